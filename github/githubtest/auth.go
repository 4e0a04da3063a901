package githubtest

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

type identKind int

const (
	identAnonymous identKind = iota
	identApp
	identInstallation
	identUser
	identClient // the App by its client id and secret
)

// identity is who sends a request.
type identity struct {
	kind identKind
	tok  *token
	user *account
	on   *userToken // the App acts for the user: at most what both may
	bad  bool       // credentials were given, but they are not valid
	why  string     // what is wrong with them
}

// token is an installation access token.
type token struct {
	text    string
	inst    *installation
	repos   map[int64]bool // nil for all of the installation
	perms   map[string]string
	expires time.Time
}

func (t *token) covers(r *repository) bool {
	return t.inst.repos[r.id] != nil && (t.repos == nil || t.repos[r.id])
}

func (id identity) login() string {
	switch {
	case id.user != nil:
		return id.user.login
	case id.kind == identInstallation:
		return "x-access-token"
	}
	return "anonymous"
}

// actor is the account that effects are put down to.
func (id identity) actor(s *Server) *account {
	if id.kind == identUser {
		return id.user
	}
	return s.bot
}

// identify reads the Authorization header. s.mu is held.
func (s *Server) identify(r *http.Request) identity {
	header := r.Header.Get("Authorization")
	if header == "" {
		return identity{}
	}
	scheme, cred, _ := strings.Cut(header, " ")
	if strings.EqualFold(scheme, "basic") {
		name, pass, ok := r.BasicAuth()
		if !ok || pass == "" {
			return identity{bad: true, why: "Bad credentials"}
		}
		if name == s.ClientID && pass == s.ClientSecret {
			return identity{kind: identClient}
		}
		cred = pass
	}
	cred = strings.TrimSpace(cred)
	if tok := s.tokens[cred]; tok != nil {
		if !s.now().Before(tok.expires) || !tok.inst.suspended.IsZero() {
			return identity{bad: true, why: "Bad credentials"}
		}
		return identity{kind: identInstallation, tok: tok}
	}
	if t := s.grants[cred]; t != nil {
		if !s.now().Before(t.expires) {
			return identity{bad: true, why: "Bad credentials"}
		}
		return identity{kind: identUser, user: t.user, on: t}
	}
	for _, a := range s.order {
		if a.token != "" && a.token == cred {
			return identity{kind: identUser, user: a}
		}
	}
	if strings.Count(cred, ".") == 2 && strings.EqualFold(scheme, "bearer") {
		if err := s.verifyJWT(cred); err != nil {
			return identity{bad: true, why: err.Error()}
		}
		return identity{kind: identApp}
	}
	return identity{bad: true, why: "Bad credentials"}
}

// verifyJWT holds an App's JSON web token against GitHub's rules: RS256, signed
// with the App's key, iss the App's id, at most 10 minutes long. A minute of
// drift is forgiven at its beginning. The texts are GitHub's.
func (s *Server) verifyJWT(text string) error {
	const undecodable = "A JSON web token could not be decoded"
	parts := strings.Split(text, ".")
	var raw [3][]byte
	for i, p := range parts {
		b, err := base64.RawURLEncoding.DecodeString(p)
		if err != nil {
			return refusal(undecodable)
		}
		raw[i] = b
	}
	var head struct{ Alg string }
	var claims struct {
		Iss any     `json:"iss"`
		Iat float64 `json:"iat"`
		Exp float64 `json:"exp"`
	}
	if json.Unmarshal(raw[0], &head) != nil || json.Unmarshal(raw[1], &claims) != nil || head.Alg != "RS256" {
		return refusal(undecodable)
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if rsa.VerifyPKCS1v15(&s.key.PublicKey, crypto.SHA256, sum[:], raw[2]) != nil {
		return refusal(undecodable)
	}
	iss := fmt.Sprint(claims.Iss)
	if f, ok := claims.Iss.(float64); ok {
		iss = strconv.FormatInt(int64(f), 10)
	}
	now := float64(s.opts.Clock().Unix())
	switch {
	case iss != strconv.FormatInt(s.AppID, 10) || s.absent:
		return refusal("Integration not found")
	case claims.Exp == 0 || claims.Exp <= now:
		return refusal("'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires")
	case claims.Exp > now+600+1:
		return refusal("'Expiration time' claim ('exp') is too far in the future")
	case claims.Iat == 0 || claims.Iat > now+60:
		return refusal("'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued")
	}
	return nil
}

// newToken makes a token in the format that GitHub uses since April 2026:
// ghs_APPID_ and a JSON web token, some 520 characters. Nobody may look inside.
func (s *Server) newToken(inst *installation, repos map[int64]bool, perms map[string]string) *token {
	enc := base64.RawURLEncoding.EncodeToString
	text := fmt.Sprintf("ghs_%d_%s.%s.%s", s.AppID, enc([]byte(`{"alg":"ES256","typ":"JWT","kid":"`+randomHex(10)+`"}`)),
		enc([]byte(`{"jti":"`+randomHex(90)+`"}`)), enc([]byte(randomHex(64))))
	t := &token{text: text, inst: inst, repos: repos, perms: perms, expires: s.now().Add(time.Hour)}
	s.tokens[text] = t
	return t
}

// EndTokens ends all installation tokens at once, as if their time were up or they had
// been revoked. It returns how many there were.
func (s *Server) EndTokens() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.tokens)
	clear(s.tokens)
	s.touch()
	return n
}
