package main

import (
	"bytes"
	"fmt"
)

// payload is about 16 KB of pull_request.opened in the shape that GitHub sends: the
// repository stands in it three times, each with its many addresses.
func payload() []byte {
	repo := func(b *bytes.Buffer, id int) {
		fmt.Fprintf(b, `{"id":%d,"name":"site","full_name":"acme/site","default_branch":"main","clone_url":"https://github.com/acme/site.git","owner":{"login":"acme","id":9,"type":"Organization"}`, id)
		for i := range 52 {
			fmt.Fprintf(b, `,"address_%d_url":"https://api.github.com/repos/acme/site/things_%d{/number}","count_%d":%d`, i, i*7919, i, i*31)
		}
		b.WriteString("}")
	}
	var b bytes.Buffer
	b.WriteString(`{"action":"opened","number":41,"pull_request":{"number":41,"state":"open","merged":false,"title":"Add thing 000000000000","body":"It \"adds\" a thing.\r\n\r\nCloses #7","updated_at":"2026-01-02T03:04:05Z","head":{"ref":"a-thing","sha":"0123456789012345678901234567890123456789","repo":`)
	repo(&b, 8)
	b.WriteString(`},"base":{"ref":"main","sha":"9876543210987654321098765432109876543210","repo":`)
	repo(&b, 7)
	b.WriteString(`}},"repository":`)
	repo(&b, 7)
	b.WriteString(`,"installation":{"id":5},"sender":{"login":"ann","id":1,"type":"User"}}`)
	return b.Bytes()
}

var numbered = []byte("Add thing ")

// number makes a payload one of its own: one that came before is not taken in again.
func number(payload []byte, round, i int) {
	at := bytes.Index(payload, numbered) + len(numbered)
	copy(payload[at:], fmt.Sprintf("%04d%08d", round, i))
}
