package test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// own are the secrets that a user of the chart has beforehand.
func own(t *testing.T) map[string]map[string]string {
	t.Helper()
	cert, key := certificate(t)
	return map[string]map[string]string{
		"team": {"clients": "bob: his-key-of-some-length\n", "keys.txt": "alice: her-key-of-some-length\n"},
		"cert": {"tls.crt": cert, "tls.key": key},
		"hub":  {"token": "hf_x", "HF_TOKEN": "hf_x"},
	}
}

// certificate is one for localhost, and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, of, of, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, bytes []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}))
	}
	return block("CERTIFICATE", der), block("PRIVATE KEY", secret)
}

// mount writes what a container's volumes hold of the release's ConfigMap and secrets, and
// of those that there are beforehand, below root.
func (r *release) mount(t *testing.T, root string, spec *corev1.PodSpec, c *corev1.Container, secrets map[string]map[string]string) {
	t.Helper()
	volumes := map[string]map[string]string{}
	for _, v := range spec.Volumes {
		switch {
		case v.ConfigMap != nil:
			volumes[v.Name] = get[corev1.ConfigMap](t, r, "ConfigMap", v.ConfigMap.Name).Data
		case v.Secret != nil && secrets[v.Secret.SecretName] != nil:
			volumes[v.Name] = secrets[v.Secret.SecretName]
		case v.Secret != nil:
			volumes[v.Name] = get[corev1.Secret](t, r, "Secret", v.Secret.SecretName).StringData
		default:
			volumes[v.Name] = map[string]string{}
		}
	}
	if r.has("StatefulSet") {
		for _, claim := range get[appsv1.StatefulSet](t, r, "StatefulSet", "").Spec.VolumeClaimTemplates {
			volumes[claim.Name] = map[string]string{}
		}
	}
	for _, m := range c.VolumeMounts {
		files, ok := volumes[m.Name]
		if !ok {
			t.Fatalf("%s mounts %s, which is no volume", c.Name, m.Name)
		}
		for name, text := range files {
			at := filepath.Join(root, m.MountPath, name)
			if m.SubPath == name {
				at = filepath.Join(root, m.MountPath)
			} else if m.SubPath != "" {
				continue
			}
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}
