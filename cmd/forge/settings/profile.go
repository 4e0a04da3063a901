package settings

import "forge/pipeline/config"

// profiled gives the limits that a file does not set the values of the profile that it
// names.
func profiled(set map[string]bool, loop *config.Loop, breaker *config.Breaker) {
	if !set["loop.profile"] {
		return
	}
	l, b := config.Profile(loop.Profile)
	for key, v := range map[string]struct{ to, from *int }{
		"loop.max_iterations": {&loop.MaxIterations, &l.MaxIterations}, "loop.review_bounces": {&loop.ReviewBounces, &l.ReviewBounces},
		"loop.test_bounces": {&loop.TestBounces, &l.TestBounces}, "loop.same_finding": {&loop.SameFinding, &l.SameFinding},
		"loop.same_failure": {&loop.SameFailure, &l.SameFailure}, "loop.diminishing_from": {&loop.DiminishingFrom, &l.DiminishingFrom},
		"loop.faults": {&loop.Faults, &l.Faults}, "breaker.max_iterations": {&breaker.MaxIterations, &b.MaxIterations},
	} {
		if !set[key] {
			*v.to = *v.from
		}
	}
	if !set["loop.auto_fix_only"] {
		loop.AutoFixOnly = l.AutoFixOnly
	}
}
