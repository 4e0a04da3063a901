package settings

import (
	"fmt"
	"io"
	"log/slog"
)

// Secret is a value that must not be shown. Whatever prints it (fmt, JSON, slog)
// prints "[secret]", or nothing when it is empty; [Secret.Reveal] returns it.
type Secret struct{ value string }

// NewSecret wraps a value.
func NewSecret(value string) Secret { return Secret{value} }

// Reveal returns the value, for the one place that needs it.
func (s Secret) Reveal() string { return s.value }

// Set reports whether there is a value.
func (s Secret) Set() bool { return s.value != "" }

// String implements fmt.Stringer.
func (s Secret) String() string {
	if s.value == "" {
		return ""
	}
	return "[secret]"
}

// Format implements fmt.Formatter, so that no verb at all shows the value.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText implements encoding.TextMarshaler, and so JSON.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
