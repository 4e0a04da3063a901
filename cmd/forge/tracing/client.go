package tracing

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

const (
	defaultTimeout = 10 * time.Second
	maxTries       = 5        // of a batch, 2, 4, 8 and 16 s apart, if the SDK lets them
	maxAnswer      = 64 << 10 // bytes of a collector's answer
)

// client sends spans to a collector by OTLP over HTTP, as the environment says. The
// SDK's own one brings gRPC along: 2 MB of the binary that nothing calls.
type client struct {
	url     string
	headers http.Header
	gzip    bool
	http    *http.Client
	after   func(time.Duration) <-chan time.Time
}

// newClient reads the variables of the OpenTelemetry specification. One that is for
// traces alone goes before the general one.
func newClient(getenv func(string) string) (*client, error) {
	env := func(name string) (string, string) {
		key := "OTEL_EXPORTER_OTLP_TRACES_" + name
		if getenv(key) == "" {
			key = "OTEL_EXPORTER_OTLP_" + name
		}
		return key, strings.TrimSpace(getenv(key))
	}
	if key, v := env("PROTOCOL"); v != "" && v != "http/protobuf" {
		return nil, fmt.Errorf("%s is %q: Forge speaks http/protobuf; take the variable away, and name the collector's HTTP port, which is 4318 as a rule", key, v)
	}
	key, endpoint := env("ENDPOINT")
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s is no address such as http://localhost:4318", key)
	}
	if key == "OTEL_EXPORTER_OTLP_ENDPOINT" {
		u = u.JoinPath("v1/traces")
	}
	c := &client{url: u.String(), headers: http.Header{}, http: &http.Client{Timeout: defaultTimeout}, after: time.After}
	for _, key := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		if err := addHeaders(c.headers, getenv(key)); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
	}
	if key, v := env("TIMEOUT"); v != "" {
		ms, err := strconv.Atoi(v)
		if err != nil || ms <= 0 {
			return nil, fmt.Errorf("%s is %q, want milliseconds", key, v)
		}
		c.http.Timeout = time.Duration(ms) * time.Millisecond
	}
	switch key, v := env("COMPRESSION"); v {
	case "", "none":
	case "gzip":
		c.gzip = true
	default:
		return nil, fmt.Errorf("%s is %q, want gzip or none", key, v)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if transport.TLSClientConfig, err = tlsConfig(env); err != nil {
		return nil, err
	}
	c.http.Transport = transport
	return c, nil
}

// addHeaders adds "name=value,name=value", percent-encoded. An error does not repeat
// what may be a secret.
func addHeaders(h http.Header, list string) error {
	for i, pair := range strings.Split(list, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || err != nil || name == "" {
			return fmt.Errorf("part %d is not name=value with the value percent-encoded", i+1)
		}
		h.Set(name, value)
	}
	return nil
}

// tlsConfig is nil when the environment names no certificates.
func tlsConfig(env func(string) (string, string)) (*tls.Config, error) {
	caKey, ca := env("CERTIFICATE")
	certKey, cert := env("CLIENT_CERTIFICATE")
	_, key := env("CLIENT_KEY")
	if ca == "" && cert == "" {
		return nil, nil
	}
	conf := &tls.Config{}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", caKey, err)
		}
		if conf.RootCAs = x509.NewCertPool(); !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: %s holds no certificate in PEM", caKey, ca)
		}
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("%s and …CLIENT_KEY: %w", certKey, err)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	return conf, nil
}

// Start implements otlptrace.Client.
func (c *client) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (c *client) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces implements otlptrace.Client. What the collector asks to be sent again
// is, a few times, while ctx lasts.
func (c *client) UploadTraces(ctx context.Context, spans []*otlp.ResourceSpans) error {
	// On the wire, TracesData is ExportTraceServiceRequest, whose package needs gRPC.
	body, err := proto.Marshal(&otlp.TracesData{ResourceSpans: spans})
	if err != nil {
		return fmt.Errorf("encode spans: %w", err)
	}
	if c.gzip {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		if _, err := w.Write(body); err != nil {
			return fmt.Errorf("compress spans: %w", err)
		}
		if err := w.Close(); err != nil {
			return fmt.Errorf("compress spans: %w", err)
		}
		body = b.Bytes()
	}
	for try := 1; ; try++ {
		again, err := c.post(ctx, body)
		if err == nil || again < 0 || try == maxTries {
			return err
		}
		select {
		case <-c.after(max(time.Second<<try, again)):
		case <-ctx.Done():
			return err
		}
	}
}

// post sends a body once. With an error comes how long the collector wants to be left
// alone before the next try; negative: it is not to be tried again.
func (c *client) post(ctx context.Context, body []byte) (time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return -1, err
	}
	req.Header = c.headers.Clone()
	req.Header.Set("Content-Type", "application/x-protobuf")
	if c.gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)) // for words alone
	if resp.StatusCode/100 == 2 {
		return 0, nil
	}
	err = fmt.Errorf("the collector answers %s: %s", resp.Status, strings.TrimSpace(strings.ToValidUTF8(string(text), "")))
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		s, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return time.Duration(max(s, 0)) * time.Second, err
	}
	return -1, err
}
