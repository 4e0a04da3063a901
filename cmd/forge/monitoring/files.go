package monitoring

import _ "embed" // the files that operators take

// The files that `forge monitoring` prints.
var (
	//go:embed alerts.yml
	Alerts string // rules for Prometheus

	//go:embed grafana.json
	Grafana string // a dashboard for Grafana 11 and later

	//go:embed log-keys.md
	LogKeys string // the catalogue of the keys of log lines; a test holds the code to it
)
