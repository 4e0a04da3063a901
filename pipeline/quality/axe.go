package quality

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"forge/pipeline/measure"
	"forge/pipeline/text"
)

// axePage is what is read of what axe-core says of one page.
type axePage struct {
	URL        string `json:"url"`
	Violations *[]struct {
		ID    string `json:"id"`
		Help  string `json:"help"`
		Nodes []struct {
			HTML string `json:"html"`
		} `json:"nodes"`
	} `json:"violations"`
}

// ReadAxe counts the elements that axe-core finds fault with, in the result of one page or a
// list of them, as `axe --stdout` prints it. Root is the folder of the repository as the tool
// saw it.
func ReadAxe(o Output, root string) (measure.Reading, error) {
	data := bytes.TrimSpace(o.Stdout)
	var pages []axePage
	var err error
	if bytes.HasPrefix(data, []byte("[")) {
		err = json.Unmarshal(data, &pages)
	} else {
		pages = make([]axePage, 1)
		err = json.Unmarshal(data, &pages[0])
	}
	switch {
	case err != nil && o.Exit != 0 || o.Exit > 125:
		return measure.Reading{}, failed(o)
	case err != nil:
		return measure.Reading{}, fmt.Errorf("it is no result of axe: %w", err)
	case len(pages) == 0:
		return measure.Reading{}, errors.New("no page was looked at: the list of results is empty")
	}
	var places []measure.Place
	for _, page := range pages {
		if page.Violations == nil {
			return measure.Reading{}, errors.New("it is no result of axe: a page has no list of violations")
		}
		for _, v := range *page.Violations {
			add := func(words string) {
				places = append(places, measure.Place{File: localName(page.URL, root), Rule: text.Clip(v.ID, 100), Message: text.Clip(text.OneLine(words), 300)})
			}
			for _, n := range v.Nodes {
				add(v.Help + ": " + n.HTML)
			}
			if len(v.Nodes) == 0 {
				add(v.Help)
			}
		}
	}
	r := measure.One(float64(len(places)))
	r.Places = places
	return r, nil
}
