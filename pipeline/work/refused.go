package work

import (
	"fmt"

	"forge/pipeline/lazyregexp"
)

// The outcomes of deliveries that ask for what their sender has no right to. People read
// them, and [Refused] reads them back.

func refusedBot(who, why string) string { return fmt.Sprintf("ignored: %s is a bot, and %s", who, why) }

func refusedReader(who, what string) string {
	return fmt.Sprintf("ignored: %s may not %s (needs write)", who, what)
}

func refusedEdit(run int64, who string) string {
	return fmt.Sprintf("run %d: not taken in: %s may not change the task (needs write)", run, who)
}

var refusedForm = lazyregexp.New(`^(?:run \d+: )?(?:ignored|not taken in): (\S+) (may not .+ \(needs write\)|is a bot, and .+)$`)

// Refused reads out of a delivery's outcome who was refused, and why; not ok where nobody
// was.
func Refused(outcome string) (who, why string, ok bool) {
	m := refusedForm.FindStringSubmatch(outcome)
	if m == nil {
		return "", "", false
	}
	return m[1], m[2], true
}
