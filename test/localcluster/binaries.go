package localcluster

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Versions of the programs that are built. The nested modules under binaries/ pin the same ones.
const (
	KubernetesVersion = "1.37.2"
	EtcdVersion       = "3.7.3"
	KwokVersion       = "0.8.0"
)

const (
	packagePath   = "github.com/hduolab/quell/test/localcluster"
	kubectl       = "kubectl"
	kwokStages    = "kwok-stages.yaml"
	progressEvery = 15 * time.Second
	// The process id follows the name: the go command of a killed process may still write when the next one builds.
	buildingPrefix = ".building-"
)

// artifact is one file of the cache and the recipe that makes it.
type artifact struct {
	name   string
	module string // folder of the nested module under binaries/
	build  func(ctx context.Context, module, target string) error
}

var artifacts = []artifact{
	{string(Etcd), "kubernetes", goBuild("go.etcd.io/etcd/server/v3", "-s -w")},
	{string(APIServer), "kubernetes", goBuild("k8s.io/kubernetes/cmd/kube-apiserver", kubernetesFlags())},
	{string(ControllerManager), "kubernetes", goBuild("k8s.io/kubernetes/cmd/kube-controller-manager", kubernetesFlags())},
	{string(Scheduler), "kubernetes", goBuild("k8s.io/kubernetes/cmd/kube-scheduler", kubernetesFlags())},
	{kubectl, "kubernetes", goBuild("k8s.io/kubernetes/cmd/kubectl", kubernetesFlags())},
	{string(Kwok), "kwok", goBuild("sigs.k8s.io/kwok/cmd/kwok", "-s -w")},
	{kwokStages, "kwok", joinStages},
}

// stagePackages hold kwok's own rules: Pods and Nodes become Ready at once, Nodes keep their lease.
var stagePackages = []string{
	"sigs.k8s.io/kwok/kustomize/stage/pod/fast",
	"sigs.k8s.io/kwok/kustomize/stage/node/fast",
	"sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease",
}

// Binaries builds every program that the cache lacks and returns the folder that holds etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler, kubectl and kwok. The folder is quell/ in [os.UserCacheDir], by versions.
// Progress goes to log, a line at least every 15 seconds while something is built. With an empty Go build cache it
// takes 10 to 17 minutes on two cores; with everything in place it only looks.
//
// Building needs the go command and a checkout of the repository as (or above) the current folder; the error says so.
// Programs appear under their name only once complete, and one process builds at a time, so concurrent use is safe,
// also by several processes.
func Binaries(ctx context.Context, log io.Writer) (string, error) {
	dir, err := binariesDir()
	if err != nil {
		return "", err
	}
	return dir, newBuilder(dir, log).ensure(ctx, artifacts)
}

func binariesDir() (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	key := fmt.Sprintf("kubernetes-%s-etcd-%s-kwok-%s-%s-%s", KubernetesVersion, EtcdVersion, KwokVersion, runtime.GOOS, runtime.GOARCH)
	return filepath.Join(cache, key), nil
}

func cacheDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache folder: %w", err)
	}
	return filepath.Join(cache, "quell"), nil
}

// builder fills one cache folder. moduleDir finds the folder of a nested module.
type builder struct {
	dir       string
	log       io.Writer
	moduleDir func(ctx context.Context, name string) (string, error)
}

func newBuilder(dir string, log io.Writer) *builder {
	if log == nil {
		log = io.Discard
	}
	return &builder{dir: dir, log: log, moduleDir: nestedModule}
}

func (b *builder) ensure(ctx context.Context, wanted []artifact) error {
	if len(b.missing(wanted)) == 0 {
		return nil
	}
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return fmt.Errorf("make the cache folder: %w", err)
	}
	lock, err := b.lock(ctx)
	if err != nil {
		return err
	}
	defer lock.release()
	if err := b.dropLeftovers(); err != nil {
		return err
	}
	missing := b.missing(wanted) // again: whoever held the lock may have built them
	for i, a := range missing {
		if err := b.buildOne(ctx, a, fmt.Sprintf("%s (%d/%d)", a.name, i+1, len(missing))); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) missing(wanted []artifact) []artifact {
	return slices.DeleteFunc(slices.Clone(wanted), func(a artifact) bool {
		info, err := os.Stat(filepath.Join(b.dir, a.name))
		return err == nil && info.Mode().IsRegular()
	})
}

// dropLeftovers removes what killed builds left behind. It needs the lock.
func (b *builder) dropLeftovers() error {
	leftovers, err := filepath.Glob(filepath.Join(b.dir, buildingPrefix+"*"))
	if err != nil {
		return err
	}
	for _, file := range leftovers {
		if err := os.Remove(file); err != nil {
			return fmt.Errorf("drop a killed build: %w", err)
		}
	}
	return nil
}

func (b *builder) lock(ctx context.Context) (*fileLock, error) {
	stop := b.report("waiting for another process that builds into " + b.dir)
	defer stop()
	return waitLock(ctx, filepath.Join(b.dir, "lock"))
}

// buildOne builds into a temporary name and renames, so that an interrupted build leaves nothing that looks complete.
func (b *builder) buildOne(ctx context.Context, a artifact, label string) error {
	module, err := b.moduleDir(ctx, a.module)
	if err != nil {
		return err
	}
	fmt.Fprintf(b.log, "localcluster: building %s\n", label)
	started := time.Now()
	temporary := filepath.Join(b.dir, fmt.Sprintf("%s%s-%d", buildingPrefix, a.name, os.Getpid()))
	stop := b.report("still building " + label)
	err = a.build(ctx, module, temporary)
	stop()
	if err != nil {
		return fmt.Errorf("build %s: %w", a.name, err)
	}
	if err := publish(temporary, filepath.Join(b.dir, a.name)); err != nil {
		return fmt.Errorf("build %s: %w", a.name, err)
	}
	fmt.Fprintf(b.log, "localcluster: built %s in %s\n", label, time.Since(started).Round(time.Second))
	return nil
}

// publish renames after the content reached the disk: a rename may survive a power cut that the content does not.
func publish(temporary, final string) error {
	file, err := os.OpenFile(temporary, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := file.Sync(); err != nil {
		return err
	}
	return os.Rename(temporary, final)
}

// report writes text with the time elapsed every 15 seconds until the returned function is called.
func (b *builder) report(text string) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	started := time.Now()
	go func() {
		defer close(ended)
		ticker := time.NewTicker(progressEvery)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				fmt.Fprintf(b.log, "localcluster: %s, %s\n", text, time.Since(started).Round(time.Second))
			}
		}
	}()
	return func() { close(done); <-ended }
}

func kubernetesFlags() string {
	const version = "k8s.io/component-base/version"
	parts := strings.Split(KubernetesVersion, ".")
	return fmt.Sprintf("-s -w -X %[1]s.gitVersion=v%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s",
		version, KubernetesVersion, parts[0], parts[1])
}

func goBuild(pkg, ldflags string) func(context.Context, string, string) error {
	return func(ctx context.Context, module, target string) error {
		_, err := runGo(ctx, module, "build", "-mod=readonly", "-ldflags", ldflags, "-o", target, pkg)
		return err
	}
}

// joinStages writes the stage files out of kwok's module into one file.
func joinStages(ctx context.Context, module, target string) error {
	out, err := runGo(ctx, module, append([]string{"list", "-mod=readonly", "-f", "{{.Dir}}"}, stagePackages...)...)
	if err != nil {
		return err
	}
	var joined bytes.Buffer
	for _, dir := range strings.Fields(out) {
		if err := appendStages(&joined, dir); err != nil {
			return err
		}
	}
	return os.WriteFile(target, joined.Bytes(), 0o644)
}

func appendStages(joined *bytes.Buffer, dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		fmt.Fprintf(joined, "---\n%s\n", text)
	}
	return nil
}

func nestedModule(ctx context.Context, name string) (string, error) {
	const advice = "the programs of the local cluster are not built yet, and building them needs a checkout of " +
		"github.com/hduolab/quell: run this inside one, or run there once: go run ./test/localcluster/cmd/localcluster build"
	out, err := runGo(ctx, "", "list", "-f", "{{.Dir}}", packagePath)
	if err != nil {
		return "", fmt.Errorf("%s: %w", advice, err)
	}
	module := filepath.Join(strings.TrimSpace(out), "binaries", name)
	if _, err := os.Stat(filepath.Join(module, "go.mod")); err != nil {
		return "", fmt.Errorf("%s: %w", advice, err)
	}
	return module, nil
}

// runGo runs the go command in dir for this machine, whatever platform the caller builds for, and returns its output.
// Its environment makes the builds equal those of any other caller, so that they share the Go build cache.
func runGo(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", args[0], err, lastLines(stderr.String(), tailLines))
	}
	return stdout.String(), nil
}

// assets returns the programs that KUBEBUILDER_ASSETS replaces; none when it is not set. Some such folders have kubectl.
func assets() (map[string]string, error) {
	dir := os.Getenv("KUBEBUILDER_ASSETS")
	if dir == "" {
		return nil, nil
	}
	paths := map[string]string{}
	for _, name := range []string{string(Etcd), string(APIServer)} {
		path := filepath.Join(dir, name)
		if err := executable(path); err != nil {
			return nil, fmt.Errorf("KUBEBUILDER_ASSETS is set, so it must hold %s (unset it to use the built one): %w", name, err)
		}
		paths[name] = path
	}
	if path := filepath.Join(dir, kubectl); executable(path) == nil {
		paths[kubectl] = path
	}
	return paths, nil
}

func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return fmt.Errorf("%s is not an executable file", path)
	}
	return nil
}

// findBinaries makes sure of the programs that these components need and of kubectl, and returns their paths by name.
func findBinaries(ctx context.Context, components []Component, log io.Writer) (map[string]string, error) {
	paths, err := assets()
	if err != nil {
		return nil, err
	}
	dir, err := binariesDir()
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	var wanted []artifact
	for _, a := range artifacts {
		if path, ok := paths[a.name]; ok {
			found[a.name] = path
		} else if neededBy(a.name, components) {
			wanted = append(wanted, a)
			found[a.name] = filepath.Join(dir, a.name)
		}
	}
	return found, newBuilder(dir, log).ensure(ctx, wanted)
}

func neededBy(name string, components []Component) bool {
	return name == kubectl ||
		slices.Contains(components, Component(name)) ||
		name == kwokStages && slices.Contains(components, Kwok)
}
