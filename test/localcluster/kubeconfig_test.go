package localcluster

import (
	"crypto/x509"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
)

func TestWriteKubeconfigStandsAlone(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	authority, err := loadAuthority(dir, "cluster")
	g.Expect(err).NotTo(HaveOccurred())
	proxy := &url.URL{Scheme: "http", Host: "127.0.0.1:3128"}
	cfg := &rest.Config{
		Host:            "https://127.0.0.1:1",
		BearerToken:     "token",
		TLSClientConfig: rest.TLSClientConfig{CAFile: authority.certFile, ServerName: "kubernetes"},
		Proxy:           http.ProxyURL(proxy),
	}
	path := filepath.Join(dir, "folder", "kubeconfig")
	g.Expect(WriteKubeconfig(path, cfg)).To(Succeed())
	g.Expect(os.Remove(authority.certFile)).To(Succeed())

	read, err := clientcmd.BuildConfigFromFlags("", path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read.Host).To(Equal(cfg.Host))
	g.Expect(read.BearerToken).To(Equal("token"))
	g.Expect(read.CAData).To(Equal(authority.pem()))
	g.Expect(read.ServerName).To(Equal("kubernetes"))
	g.Expect(read.Proxy(&http.Request{URL: &url.URL{Scheme: "https", Host: "127.0.0.1:1"}})).To(Equal(proxy))
}

func TestWriteKubeconfigIsPrivate(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	g.Expect(os.WriteFile(path, nil, 0o644)).To(Succeed())
	g.Expect(WriteKubeconfig(path, &rest.Config{Host: "https://127.0.0.1:1"})).To(Succeed())
	info, err := os.Stat(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(BeEquivalentTo(0o600))
}

func TestAuthorityIsKeptAndSignsUsers(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	first, err := loadAuthority(dir, "cluster")
	g.Expect(err).NotTo(HaveOccurred())
	kept, err := loadAuthority(dir, "cluster")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(kept.pem()).To(Equal(first.pem()))

	pair, err := kept.client("alice", []string{"dev", "ops"})
	g.Expect(err).NotTo(HaveOccurred())
	certs, err := cert.ParseCertsPEM(pair.cert)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(certs[0].Subject.CommonName).To(Equal("alice"))
	g.Expect(certs[0].Subject.Organization).To(ConsistOf("dev", "ops"))
	roots := x509.NewCertPool()
	roots.AddCert(first.certificate)
	_, err = certs[0].Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	g.Expect(err).NotTo(HaveOccurred())
}
