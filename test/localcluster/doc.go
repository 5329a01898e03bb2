// Package localcluster runs a real Kubernetes on this machine without containers or privileges, for tests, benchmarks
// and a first try: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok, which simulates the nodes, so
// that the Pods of a Deployment become Ready although nothing runs in them.
//
// Everything listens on 127.0.0.1 only and speaks TLS that both sides verify; authorization is RBAC. The programs are
// built once from Go modules into the user's cache folder (see [Binaries]). They are child processes: [Cluster.Stop]
// ends them, and on Linux the kernel ends them when this process dies in any way. On other systems a parent that is
// killed outright leaves them running.
//
// [Cluster.Requests] tells exactly which requests the API server answered, from its audit log.
//
// The package works on Linux and macOS.
package localcluster
