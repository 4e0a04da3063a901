package agent

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
)

// listedModel is an entry of a provider's list of models. Most have no more than an id.
type listedModel struct {
	ID      string `json:"id"`
	Len     int64  `json:"max_model_len"`  // vLLM
	Context int64  `json:"context_length"` // OpenRouter, and others
	Window  int64  `json:"context_window"` // Groq
	Meta    struct {
		Params int64 `json:"n_params"` // llama.cpp
	} `json:"meta"`
	Pricing struct {
		Prompt     string `json:"prompt"` // USD a token
		Completion string `json:"completion"`
		Read       string `json:"input_cache_read"`
		Write      string `json:"input_cache_write"`
	} `json:"pricing"`
}

type modelList []listedModel

// readModels reads a list of models; ok is false for anything else. What an entry says in
// another form than here is left out.
func readModels(body []byte) (list modelList, ok bool) {
	var in struct {
		Data modelList `json:"data"`
	}
	var other *json.UnmarshalTypeError
	err := json.Unmarshal(body, &in)
	return in.Data, in.Data != nil && (err == nil || errors.As(err, &other))
}

// list asks for the list of models; it is empty where there is none to be had.
func (m *remote) list(ctx context.Context) modelList {
	var raw json.RawMessage
	if !m.tell(ctx, m.endpoint, http.MethodGet, m.dialect.models(), nil, &raw) {
		return nil
	}
	list, _ := readModels(raw)
	return list
}

// find returns a model's entry; some providers write a prefix before its name.
func (l modelList) find(model string) (listedModel, bool) {
	for _, d := range l {
		if d.ID == model || strings.TrimPrefix(d.ID, "models/") == model {
			return d, true
		}
	}
	return listedModel{}, false
}

func (l modelList) names() (out []string) {
	for _, d := range l {
		out = append(out, d.ID)
	}
	return out
}

// ListedPrice is what a model costs by its provider's own list, as OpenRouter's has it; ok is
// false where there is no list, or no price in it.
func ListedPrice(ctx context.Context, name string, c Credentials) (p Price, ok bool) {
	m, err := NewProviders(ProviderOptions{Credentials: c}).remote(name)
	if err != nil {
		return p, false
	}
	d, _ := m.list(ctx).find(m.name)
	million := func(said string) float64 {
		usd, _ := strconv.ParseFloat(said, 64) // what is no number is no price
		return max(0, usd*1e6)
	}
	p = Price{Input: million(d.Pricing.Prompt), Output: million(d.Pricing.Completion), Cached: million(d.Pricing.Read), CacheWrite: million(d.Pricing.Write)}
	return p, p.Input > 0 || p.Output > 0
}

// muchCheaper is how many times less a model must cost to be taken for what needs little thought.
const muchCheaper = 4

// Cheaper names the cheapest model that the same provider lists and whose price is known, where
// it costs much less; "" where there is none.
func Cheaper(ctx context.Context, name string, c Credentials) (best string) {
	prices, _, err := LoadPrices()
	own, priced := prices.Find(name)
	m, fault := NewProviders(ProviderOptions{Credentials: c}).remote(name)
	if err != nil || fault != nil || !priced {
		return ""
	}
	provider, _, _ := strings.Cut(name, "/")
	least := own.Output / muchCheaper
	for _, n := range m.list(ctx).names() {
		p, known := prices.Find(provider + "/" + n)
		if known && p.Input*muchCheaper <= own.Input && p.Output <= least && (best == "" || p.Output < least) {
			best, least = provider+"/"+n, p.Output
		}
	}
	return best
}
