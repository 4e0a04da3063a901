package memory

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"forge/learn"
	"forge/pipeline"
	"forge/pipeline/text"
)

// sameFile is the share of the lines of a file that another has, from which it is the same
// file under another name.
const sameFile = 0.5

// followed gives dismissals with a reason the new names of their files, where a finding is
// about the very code and the old name is gone: the reason holds for the code. A dismissal
// whose code is found in more than one file is left as it is, since it is of one of them.
func (m *Learner) followed(ctx context.Context, run *pipeline.Run, known []pipeline.Learning, findings []pipeline.Finding) []pipeline.Learning {
	if m.o.File == nil {
		return known
	}
	known = slices.Clone(known)
	for i := range known {
		l := &known[i]
		if l.Code == "" || len(l.Paths) != 1 || l.Author.Login == "" || slices.Contains(l.Tags, learn.TagNoReason) {
			continue
		}
		var files []string
		for _, f := range findings {
			if f.File != "" && learn.CodeDigest(f.Code) == l.Code && !slices.Contains(files, f.File) {
				files = append(files, f.File)
			}
		}
		if len(files) == 1 && files[0] != l.Paths[0] && m.renamed(ctx, run, l, files[0]) {
			l.Paths = files
		}
	}
	return known
}

// renamed reports whether the file of a dismissal is another by now: its name is gone, and
// the other holds what stood in it when it was dismissed. What cannot be read is not known.
func (m *Learner) renamed(ctx context.Context, run *pipeline.Run, l *pipeline.Learning, to string) bool {
	if _, err := m.o.File(ctx, run.Repo, run.Head, l.Paths[0]); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	then, err := m.o.DB.Load(ctx, l.Run)
	if err != nil {
		return false
	}
	was, err := m.o.File(ctx, then.Repo, then.Head, l.Paths[0])
	if err != nil {
		return false
	}
	is, err := m.o.File(ctx, run.Repo, run.Head, to)
	return err == nil && text.Jaccard(linesOf(was), linesOf(is)) >= sameFile
}

// linesOf are the lines of a file that say something, sorted, each once.
func linesOf(data []byte) (out []string) {
	for l := range strings.SplitSeq(string(data), "\n") {
		if l = strings.TrimSpace(l); len(l) > 2 {
			out = append(out, l)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
