package localcluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const leafValidity = 365 * 24 * time.Hour

// authority signs certificates. There are two: the cluster's, and etcd's own, so that a user's certificate, which the
// API server holds to RBAC, does not open etcd.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
	certFile    string
}

// keyPair is a certificate and its key, both PEM.
type keyPair struct{ cert, key []byte }

// loadAuthority reads the authority from dir, or makes it there: tokens and kubeconfigs of kept data stay valid.
func loadAuthority(dir, name string) (*authority, error) {
	a := &authority{certFile: filepath.Join(dir, name+"-ca.crt")}
	keyPEM, _, err := keyutil.LoadOrGenerateKeyFile(filepath.Join(dir, name+"-ca.key"))
	if err != nil {
		return nil, fmt.Errorf("key of the %s authority: %w", name, err)
	}
	parsed, err := keyutil.ParsePrivateKeyPEM(keyPEM)
	if err != nil {
		return nil, fmt.Errorf("key of the %s authority: %w", name, err)
	}
	signer, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("key of the %s authority cannot sign", name)
	}
	a.key = signer
	return a, a.loadCertificate(name)
}

func (a *authority) loadCertificate(name string) error {
	certs, err := cert.CertsFromFile(a.certFile)
	if err == nil {
		a.certificate = certs[0]
		return nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("certificate of the %s authority: %w", name, err)
	}
	a.certificate, err = cert.NewSelfSignedCACert(cert.Config{CommonName: "localcluster-" + name}, a.key)
	if err != nil {
		return fmt.Errorf("certificate of the %s authority: %w", name, err)
	}
	return cert.WriteCert(a.certFile, a.pem())
}

func (a *authority) pem() []byte { return encodeCertificate(a.certificate.Raw) }

// client issues a certificate that the API server reads as this user in these groups.
func (a *authority) client(user string, groups []string) (keyPair, error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// server issues a certificate for the loopback names and for the API server's names inside a cluster. It is good for a
// client too, because etcd's gateway calls etcd with etcd's own certificate.
func (a *authority) server(name string) (keyPair, error) {
	return a.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: name},
		DNSNames: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
			"kubernetes.default.svc.cluster.local"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(firstServiceIP)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
}

func (a *authority) issue(template *x509.Certificate) (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, fmt.Errorf("generate a key for %s: %w", template.Subject.CommonName, err)
	}
	template.NotBefore = a.certificate.NotBefore
	template.NotAfter = time.Now().Add(leafValidity)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return keyPair{}, fmt.Errorf("sign a certificate for %s: %w", template.Subject.CommonName, err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return keyPair{}, fmt.Errorf("encode the key of %s: %w", template.Subject.CommonName, err)
	}
	return keyPair{encodeCertificate(der), keyPEM}, nil
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der})
}

// write stores the pair as dir/name.crt and dir/name.key.
func (p keyPair) write(dir, name string) error {
	if err := keyutil.WriteKey(filepath.Join(dir, name+".key"), p.key); err != nil {
		return fmt.Errorf("write the key of %s: %w", name, err)
	}
	if err := cert.WriteCert(filepath.Join(dir, name+".crt"), p.cert); err != nil {
		return fmt.Errorf("write the certificate of %s: %w", name, err)
	}
	return nil
}
