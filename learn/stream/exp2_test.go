package stream

import "forge/learn"

func experiments(run func(string, Policy, func(*learn.Tuning)), find func(string) Policy) {
	run("everything", find("everything known"), func(t *learn.Tuning) {})
	run("habits", find("+ habits"), func(t *learn.Tuning) {})
	p := find("predict")
	run("default", p, func(t *learn.Tuning) {})
	run("no explore", p, func(t *learn.Tuning) { t.Share = 0 })
	run("no explore, .2", p, func(t *learn.Tuning) { t.Share = 0; t.Low = 0.2 })
	run("no explore, .3", p, func(t *learn.Tuning) { t.Share = 0; t.Low = 0.3 })
	run("no explore, .3-.3", p, func(t *learn.Tuning) { t.Share = 0; t.Low = 0.3; t.High = 0.3 })
	run("no explore, .4-.4", p, func(t *learn.Tuning) { t.Share = 0; t.Low = 0.4; t.High = 0.4 })
}
