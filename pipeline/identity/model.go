package identity

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"sync"
)

// Model says how sure it is that two messages about one place are one finding: a
// logistic regression over what they share.
type Model struct {
	Bias    float64            `json:"bias"`
	Weights map[string]float64 `json:"weights"`
	// Limit is the log-odds from which two messages are taken for one: the first where
	// the run says nothing else, the second where it says very much.
	Limit [2]float64 `json:"limit"`
}

//go:embed model.json
var modelFile []byte

// Shipped is the model that Resolve uses.
var Shipped = sync.OnceValue(func() *Model { return mustModel(modelFile) })

func mustModel(raw []byte) *Model {
	m := &Model{}
	if err := json.Unmarshal(raw, m); err != nil {
		panic(fmt.Sprintf("read the embedded model: %v", err)) // unreachable: a test reads it
	}
	return m
}

// judge compares the messages of one run.
type judge struct {
	subject *subject
	weights [len(Features)]float64
	bias    float64
}

func (m *Model) judge(s *subject) *judge {
	j := &judge{subject: s}
	for i, f := range Features {
		j.weights[i] = m.Weights[f.Name]
	}
	size := s.size()
	j.bias = m.Bias - m.Limit[0]*(1-size) - m.Limit[1]*size
	return j
}

// surely returns by how much two messages are over the limit, in log-odds, when it
// is more than least; else something that is not.
func (j *judge) surely(a, b *weighed, least float64) float64 {
	f := j.subject.compare(a, b)
	sum := j.bias
	for i, w := range j.weights {
		sum += w * f[i]
	}
	w := j.weights[fGramRare]
	if sum+w <= least { // whatever the grams say
		return math.Inf(-1)
	}
	return sum + w*gram(a, b)
}
