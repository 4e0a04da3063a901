package agent

import (
	"context"
	"net/http"
	"strconv"
	"strings"
)

// ListedPrice is what a model costs by its provider's own list, as OpenRouter's has it; ok is
// false where there is no list, or no price in it.
func ListedPrice(ctx context.Context, name string, c Credentials) (p Price, ok bool) {
	m, err := NewProviders(ProviderOptions{Credentials: c}).remote(name)
	if err != nil {
		return p, false
	}
	var list struct {
		Data []struct {
			ID      string `json:"id"`
			Pricing *struct {
				Prompt     string `json:"prompt"` // USD a token
				Completion string `json:"completion"`
				Read       string `json:"input_cache_read"`
				Write      string `json:"input_cache_write"`
			} `json:"pricing"`
		} `json:"data"`
	}
	if !m.tell(ctx, m.endpoint, http.MethodGet, m.dialect.models(), nil, &list) {
		return p, false
	}
	for _, d := range list.Data {
		if d.Pricing == nil || !contains([]string{d.ID}, m.name) {
			continue
		}
		for to, said := range map[*float64]string{&p.Input: d.Pricing.Prompt, &p.Output: d.Pricing.Completion, &p.Cached: d.Pricing.Read, &p.CacheWrite: d.Pricing.Write} {
			if usd, err := strconv.ParseFloat(said, 64); err == nil && usd > 0 {
				*to = usd * 1e6
			}
		}
		return p, p.Input > 0 || p.Output > 0
	}
	return p, false
}

// muchCheaper is how many times less a model must cost to be taken for what needs no thought.
const muchCheaper = 4

// Cheaper names the cheapest model of the same provider that it lists and whose price is known,
// where it costs much less; "" where there is none. Nothing is asked of a model without a price.
func Cheaper(ctx context.Context, name string, c Credentials) string {
	prices, _, err := LoadPrices()
	own, priced := prices[dated.ReplaceAllString(name, "")]
	m, fault := NewProviders(ProviderOptions{Credentials: c}).remote(name)
	if err != nil || fault != nil || !priced {
		return ""
	}
	a, refused, err := m.get(ctx, m.dialect.models())
	if err != nil || refused != nil {
		return ""
	}
	names, _ := modelNames(a.body)
	provider, _, _ := strings.Cut(name, "/")
	best := ""
	for _, n := range names {
		full := provider + "/" + strings.TrimPrefix(n, "models/")
		p, known := prices[full]
		if known && p.Output*muchCheaper <= own.Output && p.Input*muchCheaper <= own.Input && (best == "" || p.Output < prices[best].Output) {
			best = full
		}
	}
	return best
}
