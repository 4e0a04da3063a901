package github

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/text"

	gh "github.com/google/go-github/v62/github"
)

// ErrSignedOut says that GitHub no longer takes somebody's token: it ended, or they
// took back what they had allowed.
var ErrSignedOut = errors.New("GitHub no longer accepts this sign-in")

// SignInOptions says as which App people sign in. The client id and secret are on
// the App's settings page.
type SignInOptions struct {
	BaseURL      string            // as in [Options]
	ClientID     string            // not the App's id
	ClientSecret string            // never logged, never in a URL
	Timeout      time.Duration     // of one call; default 10 s
	UserAgent    string            // default "forge"
	Base         http.RoundTripper // default: http.DefaultTransport's settings
	Clock        func() time.Time  // default time.Now
}

// SignIn is GitHub's web flow, in which people let the App know who they are, and
// what it may then ask for them. Its methods are safe for concurrent use.
type SignIn struct {
	opts SignInOptions
	at   addresses
	http *http.Client
}

// UserToken lets the App act for a person, with at most the rights that both have.
type UserToken struct {
	Token   string
	Expires time.Time // zero: the App's user tokens do not expire
}

// User is a person on GitHub.
type User struct {
	pipeline.Actor
	AvatarURL string
}

// NewSignIn returns the flow. It makes no call.
func NewSignIn(o SignInOptions) (*SignIn, error) {
	at, err := addressesOf(o.BaseURL)
	if err != nil {
		return nil, err
	}
	if o.ClientID == "" || o.ClientSecret == "" {
		return nil, errors.New("sign-in with GitHub: the client id or the client secret is missing: both are on the App's settings page, under General")
	}
	if o.Timeout <= 0 {
		o.Timeout = 10 * time.Second
	}
	if o.UserAgent == "" {
		o.UserAgent = "forge"
	}
	if o.Base == nil {
		o.Base = http.DefaultTransport.(*http.Transport).Clone()
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	client := &http.Client{
		Transport: newVersioned(timeout{next: o.Base, d: o.Timeout}),
		// Secrets go to the address that was configured, and nowhere else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &SignIn{opts: o, at: at, http: client}, nil
}

// AuthorizeURL is where somebody is sent to sign in. GitHub sends them back to
// callback, which must be one of the callback URLs in the App's settings, with the
// state and a code. challenge is the base64url SHA-256 of the verifier that
// Exchange is given (PKCE, RFC 7636).
func (s *SignIn) AuthorizeURL(callback, state, challenge string) string {
	q := url.Values{"client_id": {s.opts.ClientID}, "redirect_uri": {callback}, "state": {state},
		"code_challenge": {challenge}, "code_challenge_method": {"S256"}, "allow_signup": {"false"}}
	return s.at.web.String() + "/login/oauth/authorize?" + q.Encode()
}

// Exchange turns the code that somebody came back with into their token. A code
// works once and for ten minutes.
func (s *SignIn) Exchange(ctx context.Context, code, verifier, callback string) (UserToken, error) {
	const op = "exchange the code of a sign-in"
	form := url.Values{"client_id": {s.opts.ClientID}, "client_secret": {s.opts.ClientSecret}, "code": {code}, "code_verifier": {verifier},
		"redirect_uri": {callback}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.at.web.String()+"/login/oauth/access_token", strings.NewReader(form.Encode()))
	if err != nil {
		return UserToken{}, fmt.Errorf("%s: %w", op, err) // unreachable: the address was parsed
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", s.opts.UserAgent)
	resp, err := s.http.Do(req)
	if err != nil {
		return UserToken{}, &apiError{op: op, msg: s.clean(err.Error(), code, verifier), cause: cause(err)}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body) // in memory already: see timeout
	if err != nil {
		return UserToken{}, &apiError{op: op, msg: err.Error(), cause: err} // unreachable
	}
	var out struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"` // seconds
		TokenType   string `json:"token_type"`
		Error       string `json:"error"`
	}
	if resp.StatusCode != http.StatusOK {
		msg := fmt.Sprintf("GitHub answered %d", resp.StatusCode)
		if resp.StatusCode == http.StatusNotFound {
			msg += ": it may not know the client id; compare it with the App's settings page (General)"
		}
		return UserToken{}, &apiError{op: op, status: resp.StatusCode, msg: msg}
	}
	if err := json.Unmarshal(body, &out); err != nil {
		return UserToken{}, &apiError{op: op, status: resp.StatusCode, msg: "GitHub's answer is no JSON"} // which may hold the token
	}
	if out.Error != "" {
		return UserToken{}, fmt.Errorf("%s: %s", op, refusalOf(s.clean(out.Error, code), callback))
	}
	if out.AccessToken == "" || !strings.EqualFold(out.TokenType, "bearer") {
		return UserToken{}, &apiError{op: op, status: resp.StatusCode, msg: "GitHub's answer holds no token"}
	}
	t := UserToken{Token: out.AccessToken}
	if out.ExpiresIn > 0 {
		t.Expires = s.opts.Clock().Add(time.Duration(min(out.ExpiresIn, 1<<31)) * time.Second)
	}
	return t, nil
}

// refusalOf says what a documented error of the exchange means, and how to mend it.
func refusalOf(name, callback string) string {
	switch name {
	case "incorrect_client_credentials":
		return "GitHub does not accept the client id or the client secret: compare both with the App's settings page (General); a secret that was deleted there no longer works"
	case "redirect_uri_mismatch":
		return fmt.Sprintf("%s is not a callback URL of the App: add it in the App's settings under General, Callback URL", callback)
	case "bad_verification_code":
		return "the code is wrong, too old or used already: sign in again"
	case "unverified_user_email":
		return "GitHub wants the person to verify their primary e-mail address first"
	}
	return fmt.Sprintf("GitHub refused with %q", name)
}

// clean takes the secrets of an exchange out of a text.
func (s *SignIn) clean(words string, more ...string) string {
	for _, secret := range append(more, s.opts.ClientSecret) {
		if secret != "" {
			words = strings.ReplaceAll(words, secret, "[secret]")
		}
	}
	return text.Scrub(words)
}

// cause is the reason of a failed request without its address.
func cause(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

func (s *SignIn) client(token string) *gh.Client {
	c := gh.NewClient(s.http).WithAuthToken(token)
	c.BaseURL, c.UserAgent = s.at.rest, s.opts.UserAgent
	return c
}

// User returns who a token is of. The error wraps [ErrSignedOut] when GitHub no
// longer takes the token.
func (s *SignIn) User(ctx context.Context, token string) (User, error) {
	u, _, err := s.client(token).Users.Get(ctx, "")
	if err != nil {
		return User{}, s.explain("ask who signed in", err, token)
	}
	if u.GetID() == 0 || u.GetLogin() == "" {
		return User{}, &apiError{op: "ask who signed in", msg: "GitHub's answer names nobody"}
	}
	return User{Actor: pipeline.Actor{ID: u.GetID(), Login: u.GetLogin(), Bot: u.GetType() == "Bot"}, AvatarURL: u.GetAvatarURL()}, nil
}

// mostReadable bounds a list of repositories: at 100 a page, some 1,000 calls.
const mostReadable = 100_000

// Readable returns the repositories where the App is installed and that the token's
// owner was given the right to read, of all installations. An installation that
// refuses, because it is suspended or its organisation asks for single sign-on, adds
// none. The error wraps [ErrSignedOut] when GitHub no longer takes the token.
func (s *SignIn) Readable(ctx context.Context, token string) ([]pipeline.Repo, error) {
	const op = "list the repositories that a person can read"
	c := s.client(token)
	var out []pipeline.Repo
	page := &gh.ListOptions{PerPage: 100}
	for {
		list, resp, err := c.Apps.ListUserInstallations(ctx, page)
		if err != nil {
			return nil, s.explain(op, err, token)
		}
		for _, in := range list {
			if in.SuspendedAt != nil {
				continue
			}
			repos, err := s.readableIn(ctx, c, in.GetID())
			if code := status(err); code == http.StatusForbidden || code == http.StatusNotFound {
				continue // a limit is another error than the status alone
			}
			if err != nil {
				return nil, s.explain(op, err, token)
			}
			if out = append(out, repos...); len(out) > mostReadable {
				return nil, fmt.Errorf("%s: they are over %d", op, mostReadable)
			}
		}
		if resp.NextPage == 0 {
			return out, nil
		}
		page.Page = resp.NextPage
	}
}

func (s *SignIn) readableIn(ctx context.Context, c *gh.Client, id int64) ([]pipeline.Repo, error) {
	var out []pipeline.Repo
	page := &gh.ListOptions{PerPage: 100}
	for {
		list, resp, err := c.Apps.ListUserRepos(ctx, id, page)
		if err != nil {
			return nil, err
		}
		if list == nil {
			return nil, errors.New("GitHub's answer holds no list")
		}
		for _, r := range list.Repositories {
			out = append(out, pipeline.Repo{ID: r.GetID(), Owner: r.GetOwner().GetLogin(), Name: r.GetName(),
				DefaultBranch: r.GetDefaultBranch(), CloneURL: r.GetCloneURL(), Installation: id})
		}
		if resp.NextPage == 0 || len(out) > mostReadable {
			return out, nil
		}
		page.Page = resp.NextPage
	}
}

// Revoke ends a token at GitHub, so that nobody who has a copy can use it. One that
// has ended already is no error.
func (s *SignIn) Revoke(ctx context.Context, token string) error {
	basic := &gh.BasicAuthTransport{Username: s.opts.ClientID, Password: s.opts.ClientSecret, Transport: s.http.Transport}
	client := basic.Client()
	client.CheckRedirect = s.http.CheckRedirect
	c := gh.NewClient(client)
	c.BaseURL, c.UserAgent = s.at.rest, s.opts.UserAgent
	_, err := c.Authorizations.Revoke(ctx, s.opts.ClientID, token)
	if code := status(err); err == nil || code == http.StatusNotFound || code == http.StatusUnprocessableEntity {
		return nil
	}
	return s.explain("end a sign-in", err, token)
}

// explain makes an error of a call for a person one that holds no secret.
func (s *SignIn) explain(op string, err error, token string) error {
	code := status(err)
	if code == http.StatusUnauthorized && op != "end a sign-in" {
		return fmt.Errorf("%s: %w", op, ErrSignedOut)
	}
	var resp *gh.ErrorResponse
	if errors.As(err, &resp) {
		return &apiError{op: op, status: code, msg: s.clean(fmt.Sprintf("GitHub answered %d: %s", code, resp.Message), token)}
	}
	return &apiError{op: op, status: code, msg: s.clean(cause(err).Error(), token), cause: cause(err)}
}
