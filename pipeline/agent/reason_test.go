package agent

import (
	"encoding/json"
	"strings"
	"testing"

	"forge/pipeline"
)

// Covers T8: what blocks is withdrawn for a reason, and a word that only agrees is none.
func TestWithdrawalNeedsAReason(t *testing.T) {
	t.Parallel()
	for why, want := range map[string]bool{
		"ok": false, "OK.": false, "okay, fine": false, "O.K.": false, "Fixed, done, agreed!": false, "okaaay fiiine goood": false, "👍": false,
		"It is done.": false, "This is not a problem any more": false, "The dispute is right": false, "I agree with the implementer": false,
		"lgtm lgtm lgtm": false, "erledigt, passt": false, "a matter of taste and style": true, "1 2 3": false, "no longer valid": false,
		"the caller quotes it": true, "helper.sh has it now": true, "it is checked above in parse": true, "`os.Exit` ends it first": true,
		"the map is copied": true, "Der Aufrufer setzt Anführungszeichen": true, "Вызывающий код уже проверяет": true, "呼び出し側で確認している": true, "好的": false,
		"calc.py:2 works on integers alone": true, "After careful consideration of the whole context this is fine and acceptable.": false,
		"It works as intended and needs no change.": false, "This is handled elsewhere in the code base.": false, "The context manager closes it": true,
	} {
		if got := givesReason(why); got != want {
			t.Errorf("%q gives a reason: %v, want %v", why, got, want)
		}
	}
}

// Covers T8: without one it stays open, whoever insists; and one reason for several
// findings is none.
func TestWithdrawalWithoutAReasonStaysOpen(t *testing.T) {
	t.Parallel()
	claims := func() []*claim {
		var out []*claim
		for i, m := range []string{"the key is printed", "the lock is held"} {
			f := &pipeline.Finding{Severity: pipeline.SeverityError, Category: pipeline.CategoryCorrectness, Message: m, Fingerprint: strings.Repeat(string('a'+rune(i)), 16)}
			out = append(out, &claim{id: []string{"F1", "F2"}[i], issue: &pipeline.Issue{Finding: f}})
		}
		return out
	}
	for _, c := range []struct {
		name, one, two string
		want           [2]pipeline.Verdict
		says           string
	}{
		{"bare words", "ok", "the map is copied", [2]pipeline.Verdict{"open", "withdrawn"}, "gives no reason"},
		{"the same for both", "The caller checks it", "the caller  checks it", [2]pipeline.Verdict{"open", "open"}, "in the same words"},
		{"a reason for each", "the caller masks it", "the map is copied", [2]pipeline.Verdict{"withdrawn", "withdrawn"}, ""},
	} {
		d := &docket{claims: claims()}
		args, err := json.Marshal(map[string]any{"rulings": []map[string]string{{"id": "F1", "verdict": "withdrawn", "why": c.one}, {"id": "F2", "verdict": "withdrawn", "why": c.two}}})
		if err != nil {
			t.Fatal(err)
		}
		for range maxAsked + 1 {
			bad := strings.Join(d.take(args), "; ")
			if d.asked <= maxAsked && (c.says == "" && bad != "" || !strings.Contains(bad, c.says)) {
				t.Errorf("%s: the reviewer is told %q, want %q", c.name, bad, c.says)
			}
		}
		for i, k := range d.claims {
			if got := d.rulings[k].Verdict; got != c.want[i] {
				t.Errorf("%s: %s ends as %q, want %q", c.name, k.id, got, c.want[i])
			}
		}
	}
}
