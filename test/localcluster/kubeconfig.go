package localcluster

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// ContextName is the name of the one context, cluster and user in the files that [WriteKubeconfig] writes.
const ContextName = "quell"

const (
	tokenSeconds   int64 = 24 * 60 * 60
	unlimited            = -1
	requestTimeout       = 10 * time.Second
)

// WriteKubeconfig writes cfg to path as a kubeconfig that stands alone: certificates that cfg names as files are read
// into it. The file is readable by its owner only and replaces one that exists; missing folders are made. What a
// kubeconfig cannot hold (wrapped transports, dialers) is left out.
func WriteKubeconfig(path string, cfg *rest.Config) error {
	inlined := rest.CopyConfig(cfg)
	if err := rest.LoadTLSFiles(inlined); err != nil {
		return fmt.Errorf("read the certificates for %s: %w", path, err)
	}
	cluster, err := kubeconfigCluster(inlined)
	if err != nil {
		return err
	}
	file := clientcmdapi.NewConfig()
	file.Clusters[ContextName] = cluster
	file.AuthInfos[ContextName] = kubeconfigUser(inlined)
	file.Contexts[ContextName] = &clientcmdapi.Context{Cluster: ContextName, AuthInfo: ContextName}
	file.CurrentContext = ContextName
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		return fmt.Errorf("write kubeconfig %s: %w", path, err)
	}
	return os.Chmod(path, 0o600) // an existing file keeps its mode otherwise
}

func kubeconfigCluster(cfg *rest.Config) (*clientcmdapi.Cluster, error) {
	cluster := &clientcmdapi.Cluster{
		Server:                   cfg.Host + cfg.APIPath,
		TLSServerName:            cfg.ServerName,
		InsecureSkipTLSVerify:    cfg.Insecure,
		CertificateAuthorityData: cfg.CAData,
		DisableCompression:       cfg.DisableCompression,
	}
	if cfg.Proxy == nil {
		return cluster, nil
	}
	request, err := http.NewRequest(http.MethodGet, cfg.Host, nil)
	if err != nil {
		return nil, fmt.Errorf("find the proxy for %s: %w", cfg.Host, err)
	}
	proxy, err := cfg.Proxy(request)
	if err != nil {
		return nil, fmt.Errorf("find the proxy for %s: %w", cfg.Host, err)
	}
	if proxy != nil {
		cluster.ProxyURL = proxy.String()
	}
	return cluster, nil
}

func kubeconfigUser(cfg *rest.Config) *clientcmdapi.AuthInfo {
	return &clientcmdapi.AuthInfo{
		ClientCertificateData: cfg.CertData,
		ClientKeyData:         cfg.KeyData,
		Token:                 cfg.BearerToken,
		TokenFile:             cfg.BearerTokenFile,
		Username:              cfg.Username,
		Password:              cfg.Password,
		Impersonate:           cfg.Impersonate.UserName,
		ImpersonateUID:        cfg.Impersonate.UID,
		ImpersonateGroups:     cfg.Impersonate.Groups,
		ImpersonateUserExtra:  cfg.Impersonate.Extra,
		AuthProvider:          cfg.AuthProvider,
		Exec:                  cfg.ExecProvider,
	}
}

// ServiceAccountConfig returns a configuration that acts as the ServiceAccount namespace/name, with nothing of admin's
// own identity. It works on any cluster where admin may create tokens for that ServiceAccount, which must exist.
//
// The token is asked for 24 hours and not renewed; a server may grant less, and the time when it ends is returned.
func ServiceAccountConfig(ctx context.Context, admin *rest.Config, namespace, name string) (*rest.Config, time.Time, error) {
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("make a client: %w", err)
	}
	seconds := tokenSeconds
	token, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("ask for a token of ServiceAccount %s/%s: %w", namespace, name, err)
	}
	cfg := rest.AnonymousClientConfig(admin)
	cfg.BearerToken = token.Status.Token
	return cfg, token.Status.ExpirationTimestamp.Time, nil
}

// Config returns a copy of the administrator's configuration (group system:masters). It has no client-side rate limit,
// which would distort what a test or benchmark measures; the API server has its own priority and fairness.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.admin) }

// Kubeconfig returns the path of the administrator's kubeconfig file, in the data directory.
func (c *Cluster) Kubeconfig() string { return c.path("kubeconfig") }

// User returns the configuration of a user in these groups, known by a client certificate of the cluster's authority.
// What the user may do is up to RBAC: nothing but discovery until a role is bound.
func (c *Cluster) User(name string, groups ...string) (*rest.Config, error) {
	pair, err := c.authority.client(name, groups)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host:  c.serverURL(),
		QPS:   unlimited,
		Burst: unlimited,
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   c.authority.pem(),
			CertData: pair.cert,
			KeyData:  pair.key,
		},
	}, nil
}
