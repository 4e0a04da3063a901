package proof

import "testing"

func TestQuoted(t *testing.T) {
	for _, c := range []struct {
		in, quote string
		want      bool
	}{
		{"Users can *delete*  rows, and undo it.", "can delete rows", true},
		{"Users can undelete rows.", "delete rows", false},
		{"Users can un-delete rows.", "delete rows", false},
		{"Users can undelete rows. Admins delete rows.", "delete rows", true},
		{"It is impossible to export as PDF.", "possible to export as PDF", false},
		{"The nonblocking call stays.", "blocking call stays", false},
		{"Rows can be deleted", "can be delete", false},
		{"The list is read-only.", "list is read", false},
		{"- delete rows", "delete rows", true},
		{"「行を削除できる」こと。", "行を削除", true},
		{"(delete rows)", "delete rows", true},
		{"a", "", false},
	} {
		if got := Quoted(c.in, c.quote); got != c.want {
			t.Errorf("Quoted(%q, %q) = %v, want %v", c.in, c.quote, got, c.want)
		}
	}
}
