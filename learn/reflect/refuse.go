package reflect

import (
	"errors"
	"fmt"
	"strings"

	"forge/learn"
	"forge/pipeline"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/text"
)

// refuse says why a learning is none that a look back can teach. The task is anybody's
// words, and later runs are told what is learnt: neither may it repeat these words, nor
// say what may pass: that people's signals alone say.
func refuse(l *pipeline.Learning, task string) error {
	for _, p := range l.Paths {
		if learn.OutsidePath(p) {
			return fmt.Errorf("%q is no path within the repository", p)
		}
	}
	stands := 0
	for _, t := range l.Tags {
		if strings.HasPrefix(t, learn.StandsTag) {
			stands++
		}
	}
	switch {
	case stands > 1:
		return errors.New("its tags say that it stands for more than one thing")
	case copied(l.Content, task) || copied(l.Context, task):
		return errors.New("its words are the task's own")
	case learn.Stands(l) == learn.StandAvoid:
		return errors.New("what reviews should not ask for is for people to say")
	}
	return nil
}

// A sentence of so many words at least, of whose runs of three words so many hundredths
// stand in the task, is copied from it. Fewer words are what any two texts about the same
// thing share.
const (
	copiedWords = 6
	copiedShare = 75
)

// copied reports whether a sentence of a text is the task's.
func copied(said, task string) bool {
	whole := " " + strings.Join(text.Words(task), " ") + " "
	for _, sentence := range sentenceEnd.Split(said, -1) {
		w := text.Words(sentence)
		if len(w) < copiedWords {
			continue
		}
		n, of := 0, len(w)-2
		for i := range of {
			if strings.Contains(whole, " "+strings.Join(w[i:i+3], " ")+" ") {
				n++
			}
		}
		if 100*n >= copiedShare*of {
			return true
		}
	}
	return false
}

var sentenceEnd = lazyregexp.New(`[.!?;:]\s+|\n`)
