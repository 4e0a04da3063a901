package record

// Cite is the code that a learning is about, as it stood when that was learnt: enough to
// see later whether it still stands, changed, or is somewhere else.
type Cite struct {
	File  string   `json:"file"`
	Name  string   `json:"name"`           // what is defined there
	Lines []string `json:"lines"`          // digests of lines of the definition: all, or a sample of many
	With  []string `json:"with,omitempty"` // what the learning tells of besides that stands in it: names, numbers
}
