package access

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

const (
	sessionCookie = "forge_session"
	beginCookie   = "forge_signin"
	hostPrefix    = "__Host-" // browsers take it only with Secure, for the whole host, from this host alone

	sessionFor = 8 * time.Hour    // at most; GitHub's user tokens live as long
	beginFor   = 10 * time.Minute // between the way to GitHub and back
	clockDrift = time.Minute      // between two servers
	maxCookie  = 3800             // characters; browsers take 4,096 with the name and the attributes
)

// session is who has signed in.
type session struct {
	ID     int64  `json:"id"`
	Login  string `json:"login"`
	Avatar string `json:"avatar,omitempty"`
	Token  string `json:"token"`
	Since  int64  `json:"since"` // seconds since 1970
	Until  int64  `json:"until"`
}

// valid reports whether a session holds now.
func (s session) valid(now time.Time) bool {
	t := now.Unix()
	return s.ID > 0 && s.Login != "" && s.Token != "" && t < s.Until && s.Since <= t+int64(clockDrift.Seconds()) &&
		s.Until-s.Since <= int64(sessionFor.Seconds())
}

// attempt is a sign-in that is under way in a browser.
type attempt struct {
	State    string `json:"state"`
	Verifier string `json:"verifier"` // of PKCE
	To       string `json:"to"`       // the page to return to
	Until    int64  `json:"until"`
}

// sealer seals values into cookies: nobody else can read, make or change one.
type sealer struct {
	aead   cipher.AEAD
	about  []byte // what it is for, and where: sealed along, so that none serves for another
	random io.Reader
}

// sealed begins with this version.
const sealVersion = 1

func newSealer(secret []byte, purpose string, public *url.URL, random io.Reader) (sealer, error) {
	if len(secret) < 16 {
		return sealer{}, fmt.Errorf("the client secret has %d bytes; at least 16 are needed", len(secret))
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "forge dashboard cookie: "+purpose, 32)
	if err != nil {
		return sealer{}, err // unreachable: the length is right
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return sealer{}, err // unreachable
	}
	aead, err := cipher.NewGCM(block)
	return sealer{aead: aead, about: []byte(purpose + "\x00" + public.String()), random: random}, err
}

var cookieText = base64.RawURLEncoding

func (s sealer) seal(v any) (string, error) {
	plain, err := json.Marshal(v)
	if err != nil {
		return "", err // unreachable
	}
	nonce := make([]byte, s.aead.NonceSize())
	if _, err := io.ReadFull(s.random, nonce); err != nil {
		return "", fmt.Errorf("seal a cookie: %w", err)
	}
	text := cookieText.EncodeToString(s.aead.Seal(append([]byte{sealVersion}, nonce...), nonce, plain, s.about))
	if len(text) > maxCookie {
		return "", fmt.Errorf("seal a cookie: %d characters are over %d", len(text), maxCookie)
	}
	return text, nil
}

var errSeal = errors.New("the cookie is not one of this server's")

// open reads what seal made into v. Whatever is wrong is the same error: who tries
// learns nothing.
func (s sealer) open(text string, v any) error {
	if len(text) > maxCookie {
		return errSeal
	}
	raw, err := cookieText.DecodeString(text)
	n := s.aead.NonceSize()
	if err != nil || len(raw) < 1+n || raw[0] != sealVersion || cookieText.EncodeToString(raw) != text { // one text for one value
		return errSeal
	}
	plain, err := s.aead.Open(nil, raw[1:1+n], raw[1+n:], s.about)
	if err != nil || json.Unmarshal(plain, v) != nil {
		return errSeal
	}
	return nil
}

func (a *Access) cookieName(name string) string {
	if a.public.Scheme == "https" {
		return hostPrefix + name
	}
	return name
}

func (a *Access) setCookie(w http.ResponseWriter, name, value string, life time.Duration) {
	http.SetCookie(w, &http.Cookie{Name: a.cookieName(name), Value: value, Path: "/", MaxAge: int(life.Seconds()),
		Secure: a.public.Scheme == "https", HttpOnly: true, SameSite: http.SameSiteLaxMode})
}

// clear has the browser forget a cookie.
func (a *Access) clear(w http.ResponseWriter, name string) { a.setCookie(w, name, "", -time.Second) }

// read opens a cookie that the request has once. Of two with a name, one was put
// there by somebody else.
func (a *Access) read(r *http.Request, name string, s sealer, v any) bool {
	list := r.CookiesNamed(a.cookieName(name))
	return len(list) == 1 && s.open(list[0].Value, v) == nil
}

// session reads who has signed in.
func (a *Access) session(r *http.Request) (session, bool) {
	var s session
	return s, a.read(r, sessionCookie, a.sessions, &s) && s.valid(a.opts.Clock())
}
