package webhook_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"

	"forge/pipeline/record"
	"forge/webhook"
)

// box keeps deliveries in memory; the server keeps them in its database.
type box struct{ got []record.Delivery }

func (b *box) KeepDeliveries(_ context.Context, list []record.Delivery) error {
	b.got = append(b.got, list...)
	return nil
}

// A delivery is answered once it is kept. One with a wrong signature is refused.
func ExampleNew() {
	kept := &box{}
	receiver, err := webhook.New(kept, slog.New(slog.DiscardHandler), webhook.Options{Secret: []byte("secret")})
	if err != nil {
		fmt.Println(err)
		return
	}
	receiver.Start(context.Background())
	body := `{"action":"opened"}`
	for _, secret := range []string{"secret", "guessed"} {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(body))
		req := httptest.NewRequest(http.MethodPost, "/webhook", strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-GitHub-Event", "issues")
		req.Header.Set("X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958")
		req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
		w := httptest.NewRecorder()
		receiver.ServeHTTP(w, req)
		fmt.Println(w.Code)
	}
	if err := receiver.Stop(context.Background()); err != nil {
		fmt.Println(err)
	}
	fmt.Println(len(kept.got), kept.got[0].Event)
	// Output:
	// 202
	// 401
	// 1 issues
}
