package setup

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"forge/github"
	"forge/pipeline/agent"
)

// The files of a set-up.
const (
	configFile   = "forge.yml"
	progressFile = "setup.json"
	appKeyFile   = "app.pem"
	webhookFile  = "webhook-secret"
	clientFile   = "client-secret"
	modelKeyFile = "model-key"
	pageFile     = "register.html"
)

func (s *setup) path(name string) string { return filepath.Join(s.o.Dir, name) }

// own makes this process the one that sets up a folder, until the file is closed or the
// process ends, in whatever way: two would take one registration's answer twice, and
// write one App's key over the other's.
func own(dir string, out io.Writer) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the settings: %w", err)
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("open the folder of the settings: %w", err)
	}
	switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		f.Close()
		return nil, fmt.Errorf("another `forge setup` is at work in %s: go on there, or end it first", dir)
	case err != nil: // network file systems may know no locks of folders
		fmt.Fprintf(out, "%s cannot be locked (%v): do not start a second `forge setup` there.\n", dir, err)
	}
	return f, nil
}

// release gives a folder back. To close the file is not enough: a child that is being
// started has a copy of the descriptor for a moment, and the lock with it.
func release(f *os.File) {
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) // where there is no lock, there is none to let go of
	_ = f.Close()                                   // nothing was written
}

// load reads how far an earlier set-up came.
func (s *setup) load() (found bool, err error) {
	data, err := os.ReadFile(s.path(progressFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read how far the set-up came: %w", err)
	}
	if err := json.Unmarshal(data, &s.p); err != nil {
		return false, fmt.Errorf("%s cannot be read: %w: move it away to begin anew", s.path(progressFile), err)
	}
	return true, nil
}

// save keeps how far the set-up has come.
func (s *setup) save() error {
	if s.done {
		return s.tidy()
	}
	text, err := json.MarshalIndent(s.p, "", "  ")
	if err != nil {
		return err // unreachable: plain fields
	}
	return s.write(progressFile, string(text)+"\n", true)
}

// tidy removes what a set-up needs only until the files are there.
func (s *setup) tidy() error {
	for _, name := range []string{pageFile, progressFile} {
		if err := os.Remove(s.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// write makes a file that its owner alone can read, whole or not at all. One that is
// there is left, unless it is the set-up's own.
func (s *setup) write(name, text string, own bool) (err error) {
	path := s.path(name)
	if err := os.MkdirAll(s.o.Dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of the settings: %w", err)
	}
	if old, err := os.ReadFile(path); err == nil && !own {
		if string(old) == text {
			return nil
		}
		return fmt.Errorf("%s is there already and is left as it is: move it away, or run `forge setup --replace`, which does", path)
	}
	f, err := os.CreateTemp(s.o.Dir, "."+name+"-") // of mode 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(f.Name()))
	}
	return nil
}

// configured reports whether there is a forge.yml with an App in it.
func (s *setup) configured() (bool, error) {
	if _, err := os.Stat(s.path(configFile)); err != nil || s.o.Replace {
		return false, nil
	}
	c, err := s.config()
	if err != nil {
		return false, fmt.Errorf("%s is there, and cannot be read: %w", s.path(configFile), err)
	}
	if c.AppID == 0 || c.PrivateKeyFile == "" {
		return false, fmt.Errorf("%s is there, without an App: it is left as it is. Name another folder with --dir, or run `forge setup --replace`, which moves it to %s.old", s.path(configFile), configFile)
	}
	return true, nil
}

// clear makes sure that nothing is in the way before GitHub makes an App.
func (s *setup) clear() error {
	for _, name := range []string{appKeyFile, webhookFile, clientFile, configFile, modelKeyFile} {
		path := s.path(name)
		if _, err := os.Lstat(path); err != nil {
			continue
		}
		if !s.o.Replace {
			return fmt.Errorf("%s is there already and is left as it is: move it away, name another folder with --dir, or run `forge setup --replace`, which moves it to %s.old", path, name)
		}
		if _, err := os.Lstat(path + ".old"); err == nil {
			return fmt.Errorf("%s.old is there already: move it away", path)
		}
		if err := os.Rename(path, path+".old"); err != nil {
			return err
		}
	}
	return nil
}

// writeFiles writes the secrets and, last, the settings that name them.
func (s *setup) writeFiles(app github.Registered) error {
	if app.WebhookSecret == "" {
		return fmt.Errorf("GitHub gave the App no webhook secret: set one at %s and put it into %s", app.URL, s.path(webhookFile))
	}
	for _, f := range []struct{ name, text string }{
		{appKeyFile, app.PrivateKey}, {webhookFile, app.WebhookSecret + "\n"}, {clientFile, app.ClientSecret + "\n"}, {configFile, s.settingsText(app)},
	} {
		if err := s.write(f.name, f.text, false); err != nil {
			return err
		}
	}
	return s.writeUnit()
}

// settingsText is forge.yml.
func (s *setup) settingsText(app github.Registered) string {
	a := s.p.Answers
	var b strings.Builder
	line := func(key, value, why string) {
		text := key + ": " + value
		if why != "" {
			text = fmt.Sprintf("%-60s # %s", text, why)
		}
		b.WriteString(strings.TrimRight(text, " ") + "\n")
	}
	q := strconv.Quote
	b.WriteString("# The server's settings, made by `forge setup`. A line that begins with # shows a default.\n# Environment variables go before this file: FORGE_APP_ID, FORGE_MODEL, …\n\n")
	line("app_id", fmt.Sprint(app.ID), app.Slug+", "+app.URL)
	line("private_key_file", q(s.path(appKeyFile)), "the App's key; only the server's user may read it")
	line("webhook_secret_file", q(s.path(webhookFile)), "")
	line("client_id", q(app.ClientID), "with it people sign in to the web pages")
	line("client_secret_file", q(s.path(clientFile)), "")
	if a.GitHub != "" {
		line("github_url", q(a.GitHub), "GitHub Enterprise Server")
	}
	b.WriteString("\n")
	if a.Poll {
		line("poll", "true", "GitHub cannot reach this server: its deliveries are read")
	} else {
		line("public_url", q(a.URL), "a TLS proxy passes it on to listen")
	}
	line("# listen", "127.0.0.1:8080", "")
	line("# dashboard", "local", "who may see the web pages: local (this machine), github (people sign in), off")
	line("# state_dir", "/var/lib/forge", "work trees, caches, the SQLite file")
	line("# database_url", "postgres://…", "for several machines")
	b.WriteString("\n")
	line("model", q(a.Model), "of every role; models: {reviewer: …} sets one alone")
	if a.Reflector != "" {
		line("models", "{reflector: "+q(a.Reflector)+"}", "looks back at runs, for much less")
	}
	if a.Plain {
		line("model_limits", fmt.Sprintf("{%q: {form: %s}}", a.Model, agent.FormPlain), "it was tried: it is asked for code alone")
	}
	if p := a.provider(); p != "" {
		if _, err := os.Stat(s.path(modelKeyFile)); err == nil {
			line(p+"_api_key_file", q(s.path(modelKeyFile)), "")
		}
		if a.Base != "" {
			line(p+"_base_url", q(a.Base), "")
		}
	}
	line("# day_usd", "0", "cap on all runs in a day; 0: none")
	line("# limits", "{cost_usd: 10}", "of one run; repositories can only lower it")
	return b.String()
}
