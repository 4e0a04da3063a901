package settings

import (
	"reflect"
	"strings"
	"testing"
)

func TestSubscribers(t *testing.T) {
	t.Parallel()
	url := write(t, 0o600, "https://ci.example.com/forge\n")
	got, err := hookConfig(t, `subscribers: {ci: {url_file: "`+url+`", secret_file: SECRET, types: ["run.*"], repos: ["acme/*"]}}`)
	if err != nil {
		t.Fatal(err)
	}
	want := []Subscriber{{Name: "ci", URL: NewSecret("https://ci.example.com/forge"), Secrets: NewSecret(testSecret), Types: []string{"run.*"},
		Repos: []string{"acme/*"}}}
	if !reflect.DeepEqual(got.Subscribers, want) {
		t.Errorf("subscribers %+v", got.Subscribers)
	}
	if got, err = hookConfig(t, `subscribers: {team: {kind: slack, url_file: "`+url+`"}}`); err != nil || len(got.Subscribers) != 1 || got.Subscribers[0].Kind != "slack" {
		t.Errorf("a chat without a secret: %+v, %v", got.Subscribers, err)
	}
}

// What is wrong with a subscriber is said with its key, and never with its address or secret.
func TestSubscribersThatCannotBe(t *testing.T) {
	t.Parallel()
	near, plain, three := write(t, 0o600, "http://hidden.internal/x"), write(t, 0o600, "hidden words"), write(t, 0o600, strings.Repeat(testSecret+"\n", 3))
	for yaml, want := range map[string]string{
		`subscribers: {ci: {secret_file: SECRET}}`:                                            "subscribers.ci needs url_file",
		`subscribers: {ci: {url_file: SECRET}}`:                                               "and secret_file",
		`subscribers: {ci: {url_file: "` + near + `", secret_file: SECRET}}`:                  "must hold an https address, or set `private: true`",
		`subscribers: {ci: {url_file: "` + plain + `", secret_file: SECRET, private: true}}`:  "must hold an address such as",
		`subscribers: {ci: {url_file: "` + near + `", secret_file: SHORT, private: true}}`:    "at least 16 characters",
		`subscribers: {ci: {url_file: "` + near + `", secret_file: OPEN, private: true}}`:     "chmod 600",
		`subscribers: {ci: {url_file: "` + near + `", secret_file: "` + three + `"}}`:         "or two on a line each",
		`subscribers: {"a b": {url_file: "` + near + `", secret_file: SECRET}}`:               "use letters, digits, points and dashes",
		`subscribers: {ci: {url_file: "` + near + `", secret_file: SECRET, types: ["[run"]}}`: "must be a glob",
	} {
		_, err := hookConfig(t, yaml)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), testSecret) {
			t.Errorf("%s: %v, want %q", yaml, err, want)
		}
	}
}
