package recall_test

import (
	"fmt"

	"forge/learn/recall"
	"forge/pipeline"
)

// The index is told of every learning, and asked with the change that is to be made.
func ExampleIndex() {
	ix := recall.New()
	for i, content := range []string{"Round money half up.", "Quote what the shell expands."} {
		l := pipeline.Learning{ID: int64(i + 1), Scope: "repo:acme/shop", Content: content,
			Paths: []string{[]string{"cart/total.go", "greet.sh"}[i]}, Confidence: 0.8, State: pipeline.LearningActive}
		if err := ix.Put(l); err != nil {
			fmt.Println(err)
		}
	}
	for _, hit := range ix.Search(recall.Query{Scopes: []string{"repo:acme/shop"}, Text: "The total is rounded wrong",
		Paths: []string{"cart/total.go"}, Limit: 1}) {
		fmt.Println(hit.ID, hit.Why.File)
	}
	// Output: 1 cart/total.go
}
