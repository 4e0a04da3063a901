package stream

import "forge/learn"

var variants = []variant{
	{"default", func(t *learn.Tuning) {}},
	{"logit", func(t *learn.Tuning) { t.Linear = false }},
	{"all x2", func(t *learn.Tuning) {
		t.Cat *= 2
		t.Rule *= 2
		t.Tests *= 2
		t.CT *= 2
		t.RT *= 2
		t.RV *= 2
		t.Dir *= 2
		t.CD *= 2
		t.RD *= 2
	}},
	{"mean .05", func(t *learn.Tuning) { t.Mean = 0.05 }},
	{"slope sd 3", func(t *learn.Tuning) { t.Slope = 3 }},
	{"slope -2", func(t *learn.Tuning) { t.SlopeMean = -2 }},
	{"knots", func(t *learn.Tuning) { t.Knot = .7 }},
}
