package github

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/text"

	"github.com/bradleyfalzon/ghinstallation/v2"
	gh "github.com/google/go-github/v62/github"
)

// apiError is a call that did not do what it should, and that may be tried again.
// What cannot be mended by trying again is a *pipeline.Fault.
type apiError struct {
	op        string
	msg       string
	status    int           // 0 when there was no answer
	ambiguous bool          // the effect may have happened
	after     time.Duration // how long GitHub wants to be left alone
	cause     error
}

func (e *apiError) Error() string {
	var b strings.Builder
	if e.op != "" {
		b.WriteString(e.op + ": ")
	}
	b.WriteString(text.Scrub(e.msg))
	if e.after > 0 {
		fmt.Fprintf(&b, " (try again in %s)", e.after.Round(time.Second))
	}
	if e.ambiguous {
		b.WriteString(" (it may have taken effect all the same)")
	}
	return b.String()
}

func (e *apiError) Unwrap() error { return e.cause }

// Ambiguous reports whether the call may have had its effect. Then the next
// attempt must look before it makes anything.
func (e *apiError) Ambiguous() bool { return e.ambiguous }

// RetryAfter is how long to wait before the next call; 0 when GitHub named no time.
func (e *apiError) RetryAfter() time.Duration { return e.after }

// Limited reports whether GitHub was called too often: that passes by itself.
func (e *apiError) Limited() bool { return e.status == http.StatusTooManyRequests }

// tooOften is the error of a call that the library itself did not make, because an earlier
// answer said that none is left; nil when err is none.
func tooOften(op string, err error) error {
	var rate *gh.RateLimitError
	var abuse *gh.AbuseRateLimitError
	after := limitWait
	switch {
	case errors.As(err, &rate):
		after = time.Until(rate.Rate.Reset.Time) + time.Second // by the library's clock, which refused the call
	case errors.As(err, &abuse):
		if abuse.RetryAfter != nil {
			after = *abuse.RetryAfter
		}
	default:
		return nil
	}
	return &apiError{op: op, status: http.StatusTooManyRequests, msg: "GitHub's rate limit was reached",
		after: min(max(after, time.Second), limitMost), cause: err}
}

// explain turns an error of a call into a *pipeline.Fault when it is final, or an
// *apiError. permission names what the call needs, as the App's settings page does.
func explain(op, permission string, err error) error {
	if err == nil {
		return nil
	}
	var fault *pipeline.Fault
	if errors.As(err, &fault) {
		return fault
	}
	var known *apiError
	if errors.As(err, &known) {
		e := *known
		if e.op == "" {
			e.op = op
		}
		if e.status == http.StatusForbidden {
			return refused(op, permission, e.msg)
		}
		return &e
	}
	if limit := tooOften(op, err); limit != nil {
		return limit
	}
	var resp *gh.ErrorResponse
	if errors.As(err, &resp) && resp.Response != nil {
		return explainResponse(op, permission, resp)
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return &apiError{op: op, msg: "the answer is not JSON, as GitHub's API gives it: a proxy, or another server at github_url? (" + err.Error() + ")", cause: err}
	}
	return &apiError{op: op, msg: err.Error(), cause: err}
}

func explainResponse(op, permission string, r *gh.ErrorResponse) error {
	msg := r.Message
	for _, e := range r.Errors {
		if m := strings.TrimSpace(e.Message); m != "" {
			msg += "; " + m
		} else if e.Field != "" {
			msg += "; " + e.Field + ": " + e.Code
		}
	}
	switch r.Response.StatusCode {
	case http.StatusForbidden:
		if p := r.Response.Header.Get("X-Accepted-GitHub-Permissions"); p != "" {
			permission = strings.ReplaceAll(p, "=", ": ")
		}
		return refused(op, permission, msg)
	case http.StatusUnauthorized:
		return &apiError{op: op, status: 401, msg: "GitHub did not accept the installation's token: " + msg +
			"; where an owner has suspended or uninstalled the App, Settings, Applications, Installed GitHub Apps says so", cause: r}
	}
	return &apiError{op: op, status: r.Response.StatusCode, msg: fmt.Sprintf("GitHub answered %d: %s", r.Response.StatusCode, msg), cause: r}
}

func refused(op, permission, msg string) *pipeline.Fault {
	words := fmt.Sprintf("GitHub refused to %s: %s.", op, strings.TrimSuffix(text.Scrub(msg), "."))
	if strings.Contains(strings.ToLower(msg), "archived") {
		words += " Nothing can be written to an archived repository: its owner can unarchive it under Settings, General; otherwise cancel the run."
	} else if strings.Contains(msg, "not accessible by integration") && permission != "" {
		words += fmt.Sprintf(" The App lacks the permission %q: grant it in the App's settings under Permissions, then accept the request in the installation's settings.", permission)
	}
	return final("%s", words)
}

// final is a fault that no further attempt can mend.
func final(format string, args ...any) *pipeline.Fault {
	return &pipeline.Fault{Class: pipeline.FaultGitHub, Message: text.Scrub(fmt.Sprintf(format, args...)), Final: true}
}

// status returns the HTTP status of a failed call, or 0.
func status(err error) int {
	var e *apiError
	if errors.As(err, &e) {
		return e.status
	}
	var resp *gh.ErrorResponse
	if errors.As(err, &resp) && resp.Response != nil {
		return resp.Response.StatusCode
	}
	return 0
}

// lasting makes a final fault of what GitHub answers alike however often it is asked.
func lasting(err error) error {
	switch status(err) {
	case http.StatusMethodNotAllowed, http.StatusConflict, http.StatusGone, http.StatusUnprocessableEntity:
		return final("%v", err)
	}
	return err
}

// gone reports whether the thing that a call was about is not there.
func gone(err error) bool { s := status(err); return s == http.StatusNotFound || s == http.StatusGone }

// tokenError explains why GitHub gave no installation token. 403 and 404 are the
// state of the installation, not an error to try again.
func tokenError(e *ghinstallation.HTTPError, want string) error {
	if e.Response == nil {
		return &apiError{msg: e.Message, cause: e.RootCause}
	}
	defer e.Response.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(e.Response.Body, 4096))
	msg, id := message(body), e.InstallationID
	switch code := e.Response.StatusCode; {
	case code == http.StatusUnauthorized:
		return final("GitHub does not accept the App's signature (%s). Check the App id and its private key, and this machine's clock; a key may have been deleted in the App's settings.", msg)
	case code == http.StatusForbidden:
		return final("Installation %d may not act: %s. When it is suspended, an owner can lift that under Settings, Applications, Installed GitHub Apps.", id, msg)
	case code == http.StatusNotFound:
		return final("Installation %d is gone: the App was uninstalled, or belongs to another App id. Install it again and start a new run.", id)
	case code == http.StatusUnprocessableEntity:
		return final("GitHub gives installation %d no token for this work: %s. The App needs %s, for this repository. Grant what is missing in the App's settings, then accept the request in the installation's settings.", id, msg, want)
	default:
		return &apiError{status: code, msg: fmt.Sprintf("get a token for installation %d: GitHub answered %d: %s", id, code, msg)}
	}
}
