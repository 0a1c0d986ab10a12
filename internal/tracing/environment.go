package tracing

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// Prefixes of the exporter's variables; the traces' own go before the general ones.
const (
	general  = "OTEL_EXPORTER_OTLP_"
	ofTraces = "OTEL_EXPORTER_OTLP_TRACES_"
)

// variables reads the environment.
type variables func(name string) string

// exporter returns the value of a variable of the exporter, and its name.
func (v variables) exporter(name string) (value, from string) {
	if value = v(ofTraces + name); value != "" {
		return value, ofTraces + name
	}
	return v(general + name), general + name
}

// endpoint returns the URL that spans are sent to; empty: none are.
func (v variables) endpoint() (string, error) {
	if strings.EqualFold(v("OTEL_SDK_DISABLED"), "true") {
		return "", nil
	}
	exporter := v("OTEL_TRACES_EXPORTER")
	switch exporter {
	case "", "otlp":
	case "none":
		return "", nil
	default:
		return "", fmt.Errorf("OTEL_TRACES_EXPORTER: %.40q is neither otlp nor none", exporter)
	}
	address, from := v.exporter("ENDPOINT")
	if address == "" && exporter == "" {
		return "", nil
	}
	address = cmp.Or(address, "http://localhost:4318")
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("%s: want a URL such as http://localhost:4318", from)
	}
	if from == general+"ENDPOINT" {
		u = u.JoinPath("v1", "traces")
	}
	if protocol, from := v.exporter("PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
		return "", fmt.Errorf("%s: %.40q is not http/protobuf", from, protocol)
	}
	for _, name := range []string{"CLIENT_KEY", "CLIENT_CERTIFICATE"} {
		if value, from := v.exporter(name); value != "" {
			return "", fmt.Errorf("%s: is not supported", from)
		}
	}
	return u.String(), nil
}

// client returns what sends spans to an endpoint.
func (v variables) client(endpoint string) (*client, error) {
	c := &client{endpoint: endpoint, headers: http.Header{}, http: &http.Client{Timeout: 10 * time.Second}}
	list, from := v.exporter("HEADERS")
	for pair := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		text, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || name == "" || err != nil || strings.ContainsAny(name+text, "\r\n") {
			return nil, fmt.Errorf("%s: want NAME=VALUE,NAME=VALUE", from) // which may be secrets
		}
		c.headers.Set(name, text)
	}
	if ms, from := v.exporter("TIMEOUT"); ms != "" {
		n, err := strconv.Atoi(ms)
		if err != nil || n < 1 || n > 600_000 {
			return nil, fmt.Errorf("%s: want milliseconds from 1 to 600000", from)
		}
		c.http.Timeout = time.Duration(n) * time.Millisecond
	}
	switch compression, from := v.exporter("COMPRESSION"); compression {
	case "", "none":
	case "gzip":
		c.gzip = true
	default:
		return nil, fmt.Errorf("%s: %.40q is neither gzip nor none", from, compression)
	}
	if file, from := v.exporter("CERTIFICATE"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", from, err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s: %s has no certificate", from, file)
		}
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.TLSClientConfig = &tls.Config{RootCAs: pool}
		c.http.Transport = transport
	}
	return c, nil
}
