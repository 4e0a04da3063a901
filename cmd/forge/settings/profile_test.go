package settings

import (
	"strings"
	"testing"

	"forge/pipeline/config"
)

// A profile fills in what is not set, wherever it is chosen; strict is what there was.
func TestProfile(t *testing.T) {
	t.Parallel()
	read := func(yaml string, base config.Config) config.Config {
		t.Helper()
		c, err := Repository("forge.yml", []byte(yaml), base)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	def := config.Default()
	balanced := read("loop: {profile: balanced, same_finding: 4}", def)
	if l := balanced.Loop; l.MaxIterations != 10 || l.SameFinding != 4 || l.DiminishingFrom != 8 || l.Faults != 5 || !l.AutoFixOnly ||
		balanced.Breaker.MaxIterations != 10 || balanced.Limits != def.Limits {
		t.Errorf("balanced: %+v, %+v", l, balanced.Breaker)
	}
	patient := read("breaker: {max_iterations: 6}\nloop: {profile: patient}", def)
	if patient.Loop.MaxIterations != 20 || patient.Loop.AutoFixOnly || patient.Breaker.MaxIterations != 6 {
		t.Errorf("patient: %+v, %+v", patient.Loop, patient.Breaker)
	}
	strict := read("loop: {profile: strict}", patient)
	want, _ := config.Profile("strict")
	if strict.Loop != want || strict.Breaker.MaxIterations != def.Breaker.MaxIterations {
		t.Errorf("strict on a patient server: %+v", strict.Loop)
	}
	if want.Profile = ""; want != def.Loop {
		t.Errorf("strict is %+v, and the default %+v", want, def.Loop)
	}
	if c, err := Task("#1", "loop: {profile: patient}", def, def, true); err != nil || c.Loop.MaxIterations != 20 {
		t.Errorf("in an issue: %+v, %v", c.Loop, err)
	}
	if _, err := Task("#1", "loop: {profile: patient}", def, def, false); err == nil || !strings.Contains(err.Error(), "loop.profile") {
		t.Errorf("by anybody: %v", err)
	}
	if _, err := Repository("forge.yml", []byte("loop: {profile: ballanced}"), def); err == nil || !strings.Contains(err.Error(), "balanced") {
		t.Errorf("misspelt: %v", err)
	}
}
