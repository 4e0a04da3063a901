package identity

import "strings"

// Messages are comments on a pull request: what all of them are about says little of one.
type Messages struct {
	subject *subject
	texts   map[string]*text
	weighed map[string]*weighed
	lexicon lexicon
}

// NewMessages reads them.
func NewMessages(list ...string) *Messages {
	m := &Messages{newSubject(), map[string]*text{}, map[string]*weighed{}, lexicon{}}
	for _, s := range list {
		m.subject.add(m.read(s))
	}
	return m
}

func (m *Messages) read(s string) *text {
	if m.texts[s] == nil {
		m.texts[s] = m.lexicon.read(s)
	}
	return m.texts[s]
}

// Compare returns the features of two messages, which need not be among them.
func (m *Messages) Compare(a, b string) [len(Features)]float64 {
	for _, s := range []string{a, b} {
		if m.weighed[s] == nil {
			m.weighed[s] = m.subject.weigh(m.read(s))
		}
	}
	f := m.subject.compare(m.weighed[a], m.weighed[b])
	f[fGramRare] = gram(m.weighed[a], m.weighed[b])
	return f
}

// Stems are the words of a message that say something, each once, without their endings.
func Stems(message string) []string {
	seen := map[string]bool{}
	var out []string
	for _, w := range strings.FieldsFunc(message, func(c rune) bool { return !inToken(c) && c != '\'' && c != '’' }) {
		for _, x := range look(w).words {
			if !seen[x.stem] {
				seen[x.stem] = true
				out = append(out, x.stem)
			}
		}
	}
	return out
}
