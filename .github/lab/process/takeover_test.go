package process

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"forge/github/githubtest"
	"forge/lab/feature"
	"forge/pipeline"
)

// Covers V6: at random moments of runs of three modules, on two servers, somebody stops the
// run, pushes a commit of their own to the branch of a module or to the run's, and lets it go
// on; meanwhile a server dies, sometimes for good. No commit of theirs is lost, each module
// is built by one run, and nobody is asked. FORGE_TAKE_OVERS sets how many moments are tried.
func TestTakeOverModules(t *testing.T) {
	long(t)
	t.Parallel()
	left := 4
	if n, err := strconv.Atoi(os.Getenv("FORGE_TAKE_OVERS")); err == nil {
		left = n
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %d take-overs", seed, left)
	random := rand.New(rand.NewPCG(seed, 3))
	places := map[string]int{}
	for runs := 0; left > 0 && !t.Failed(); runs++ {
		database := newDatabase(t)
		t.Run(fmt.Sprint("run ", runs+1), func(t *testing.T) {
			f := feature.Beside(3, 3)
			f.Modules[2].Needs, f.Minute = []string{"a"}, 200*time.Millisecond
			o := &takeOver{labTest: modular(t, f, database), random: random, pushed: map[string]string{}}
			left -= o.play(min(left, 3))
			pull := o.verified(patience)
			o.check(pull, database)
			for where := range o.pushed {
				places[where[strings.LastIndex(where, " ")+1:]]++
			}
		})
	}
	t.Logf("commits by hand, by their file: %v", places)
}

// takeOver is a run that people take over.
type takeOver struct {
	*labTest
	random *rand.Rand
	pushed map[string]string // files that people pushed, by the branch
}

// play takes the run over at some moments, and reports at how many it was still at work.
func (o *takeOver) play(most int) (done int) {
	o.t.Helper()
	serve := func(i int) *process {
		return o.serve("FORGE_STATE_DIR=" + filepath.Join(o.dir, fmt.Sprintf("state-%d", i)))
	}
	servers := []*process{}
	for i := range 2 {
		o.shareCache(filepath.Join(o.dir, fmt.Sprintf("state-%d", i)))
		servers = append(servers, serve(i))
	}
	o.start()
	gone := false
	say := func(words string) {
		o.t.Helper()
		if _, err := o.gh.As("acme").Comment(e2eRepo, o.issue, words); err != nil {
			o.t.Fatal(err)
		}
	}
	for done < most {
		wait(500 + o.random.IntN(4000))
		branch := o.branchToPush()
		if branch == "" && o.isVerified() {
			return max(done, 1)
		}
		if branch == "" {
			continue
		}
		say("/forge stop")
		wait(o.random.IntN(1000))
		i := o.random.IntN(2)
		switch {
		case gone:
		case done == 1 && o.random.IntN(2) == 0: // the other one takes over what it held
			servers[i].kill()
			o.gh.SetHook(servers[1-i].url + "/webhook")
			gone = true
		default:
			servers[i].kill()
			servers[i] = serve(i)
		}
		file, words := fmt.Sprintf("hand-%d.txt", done), "by hand\n"
		if id := branch[strings.LastIndex(branch, "--")+1:]; strings.HasPrefix(id, "-") {
			file = id[1:] + "/" + file
		}
		_, err := o.gh.As("acme").PushFiles(e2eRepo, githubtest.Push{Branch: branch, Message: "By hand", Files: map[string]*string{file: &words}})
		if err != nil {
			o.t.Logf("%s is gone: %v", branch, err) // the run ended meanwhile
		} else {
			o.pushed[branch+" "+file] = file
		}
		wait(o.random.IntN(1000))
		say("/forge resume")
		done++
	}
	return done
}

// branchToPush is a branch of the run that is there, and "" when it has none, or has ended.
func (o *takeOver) branchToPush() string {
	p := o.pull()
	if p == nil || o.isVerified() {
		return ""
	}
	var there []string
	for _, name := range []string{p.Branch, p.Branch + "--a", p.Branch + "--b", p.Branch + "--c"} {
		if head, err := o.gh.Head(e2eRepo, name); err == nil && head != "" {
			there = append(there, name)
		}
	}
	return there[o.random.IntN(len(there))]
}

// check wants everything that people pushed, and each module once.
func (o *takeOver) check(p *githubtest.Pull, database string) {
	o.t.Helper()
	kept := map[string]bool{p.Branch: true} // those that somebody pushed to stay
	for where := range o.pushed {
		branch, _, _ := strings.Cut(where, " ")
		kept[branch] = true
	}
	files := o.filesAt(p, len(kept))
	if got := strings.Fields(files[1]); len(slices.Compact(got)) != 3 {
		o.t.Errorf("merged: %q", files[1])
	}
	for where, file := range o.pushed {
		if text, err := o.gh.File(e2eRepo, p.Head, file); err != nil || text != "by hand\n" {
			o.t.Errorf("%s is lost: %v", where, err)
		}
	}
	for name, n := range o.shape(p) {
		if n > 1 && strings.Contains(name, "status") {
			o.t.Errorf("%d × %s", n, name)
		}
	}
	for _, s := range o.procs {
		s.kill()
	}
	run, parts, _ := o.runs(database)
	asked := len(run.Gates)
	for _, part := range parts {
		asked += len(part.Gates)
	}
	if run.State != pipeline.StateVerified || len(parts) != 3 || asked > 0 {
		o.t.Errorf("the run is %s with %d modules, and asked %d times: %+v", run.State, len(parts), asked, run.Gates)
	}
	o.t.Logf("taken over on %v", o.pushed)
}
