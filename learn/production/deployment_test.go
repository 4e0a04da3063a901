package production

import (
	"fmt"
	"strings"
	"testing"
)

func deploymentBody(status string) []byte {
	s := ""
	if status != "" {
		s = fmt.Sprintf(`,"deployment_status":{"state":%q,"description":"it is <!-- x -->so","target_url":"https://ci.example.com/1","created_at":"2026-03-01T10:05:00Z"}`, status)
	}
	return []byte(`{"action":"created","deployment":{"id":987,"sha":"` + strings.Repeat("a", 40) +
		`","ref":"main","task":"deploy","environment":"production","created_at":"2026-03-01T10:00:00Z","creator":{"login":"ann"}},"repository":{"full_name":"acme/shop"}` + s + `}`)
}

func TestReadDeployment(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status, state string
		succeeded     bool
		observed      Status
	}{
		{"", "pending", false, ""}, {"in_progress", "in_progress", false, ""}, {"success", "success", true, StatusResolved},
		{"failure", "failure", false, StatusFiring},
		{"error", "error", false, StatusFiring}, {"inactive", "inactive", false, ""},
	} {
		d, o, why, err := ReadDeployment("deployment_status", deploymentBody(tt.status))
		if err != nil || why != "" {
			t.Fatal(why, err)
		}
		if d.State != tt.state || d.At.IsZero() == tt.succeeded || d.ID != 987 || d.Creator != "ann" || d.Repo != "acme/shop" {
			t.Errorf("%s: %+v", tt.status, d)
		}
		if got := orZero(o).Status; got != tt.observed {
			t.Errorf("%s: observed %q, want %q", tt.status, got, tt.observed)
		}
		if o != nil && (o.Deployment != 987 || o.Text != "it is so" || o.URL == "") {
			t.Errorf("%s: %+v", tt.status, o)
		}
	}
	preview := strings.Replace(string(deploymentBody("failure")), `"environment":`, `"transient_environment":true,"environment":`, 1)
	if d, o, why, err := ReadDeployment("deployment_status", []byte(preview)); d.State != "failure" || o != nil || why != "" || err != nil {
		t.Errorf("a preview: %+v, %+v, %s, %v", d, o, why, err)
	}
	if _, _, why, err := ReadDeployment("deployment_status", deploymentBody("strange")); why == "" || err != nil {
		t.Error(why, err)
	}
	for _, body := range []string{"", "[]", "{}", `{"deployment":{"id":1}}`} {
		if _, _, _, err := ReadDeployment("deployment", []byte(body)); err == nil {
			t.Errorf("%s: no error", body)
		}
	}
}
