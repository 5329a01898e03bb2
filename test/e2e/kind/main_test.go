package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
)

// asCommand makes this test binary the command.
const asCommand = "QUELL_TEST_E2E_KIND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(command(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// machine is one on which some programs are there. Each writes its command line into a file, and does what a shell script says.
type machine struct{ dir, checkout string }

func newMachine(t *testing.T, programs map[string]string) machine {
	g := NewWithT(t)
	m := machine{t.TempDir(), t.TempDir()}
	all := map[string]string{"make": "", "docker": "", "kubectl": "", "kind": "", "go": `[ "$1" != list ] || echo ` + m.checkout}
	for name, script := range programs {
		all[name] = script
	}
	for name, script := range all {
		if script == "absent" {
			continue
		}
		text := fmt.Sprintf("#!/bin/bash\necho \"%s $*\" >>%s/log\n%s\n", name, m.dir, script)
		g.Expect(os.WriteFile(filepath.Join(m.dir, name), []byte(text), 0o700)).To(Succeed())
	}
	return m
}

func (m machine) start(t *testing.T, environment []string, args ...string) *gexec.Session {
	cmd := exec.Command(os.Args[0], args...)
	path := m.dir + ":/bin:/usr/bin"
	if slices.ContainsFunc([]string{"docker", "kind", "kubectl"}, m.lacks) { // which this machine may have
		path = m.dir
	}
	cmd.Env = slices.Concat(environment, []string{asCommand + "=1", "PATH=" + path, "TMPDIR=" + t.TempDir()})
	session, err := gexec.Start(cmd, t.Output(), t.Output())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { <-session.Kill().Exited })
	return session
}

func (m machine) lacks(name string) bool {
	_, err := os.Stat(filepath.Join(m.dir, name))
	return err != nil
}

// did are the command lines so far.
func (m machine) did(t *testing.T) string {
	log, err := os.ReadFile(filepath.Join(m.dir, "log"))
	NewWithT(t).Expect(err).To(Or(Not(HaveOccurred()), MatchError(fs.ErrNotExist))) // before the first program
	return string(log)
}

func TestExitCodes(t *testing.T) {
	const noImage = `case "$1 $2" in "image inspect"|"pull "*) exit 1;; esac`
	tests := map[string]struct {
		args        string
		programs    map[string]string
		environment string
		code        int
		message     string
	}{
		"help":                      {"--help", nil, "", 0, ""},
		"no command":                {"", nil, "", exitUsage, "which command"},
		"an unknown command":        {"upp", nil, "", exitUsage, "unknown command"},
		"an unknown flag":           {"up --nope", nil, "", exitUsage, "unknown flag"},
		"an argument":               {"test now", nil, "", exitUsage, "unknown command"},
		"all is well":               {"test", nil, "", 0, ""},
		"no docker":                 {"test", map[string]string{"docker": "absent"}, "", exitMissing, "docker is not in PATH: install"},
		"no engine":                 {"test", map[string]string{"docker": "exit 1"}, "", exitMissing, "no Docker engine answers: start it"},
		"no kubectl":                {"test", map[string]string{"kubectl": "absent"}, "", exitMissing, "kubectl is not in PATH: install it"},
		"KIND names none":           {"test", nil, "KIND=/no/kind", exitMissing, "KIND names no program"},
		"no kind, and none built":   {"test", map[string]string{"kind": "absent", "go": "[ $1 = list ]"}, "", exitMissing, "could not be built: install it"},
		"no given nodes' image":     {"test", map[string]string{"docker": noImage}, "KIND_NODE_IMAGE=a/b:c", exitMissing, "the nodes' image a/b:c is not there"},
		"no nodes' image of kind":   {"test", map[string]string{"kind": `[ "$1" != create ] || { echo 'failed to pull image "x"'; exit 1; }`}, "", exitMissing, "the nodes' image is not there"},
		"a cluster of that name":    {"up", map[string]string{"kind": `[ "$1" != get ] || echo quell-dev`}, "", exitFailed, "there is a cluster of that name already"},
		"an operator's image fails": {"test", map[string]string{"make": "exit 2"}, "", exitFailed, "building the operator's image: make --no-print-directory image IMAGE=quell-manager:e2e: exit status 2"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m := newMachine(t, test.programs)
			var environment []string
			if test.environment != "" {
				environment = append(environment, test.environment)
			}
			session := m.start(t, environment, strings.Fields(test.args)...)
			g.Eventually(session, time.Minute).Should(gexec.Exit(test.code))
			g.Expect(string(session.Err.Contents())).To(ContainSubstring(test.message))
		})
	}
}

func TestTheClusterIsDeletedAndWhatFailedIsKept(t *testing.T) {
	g := NewWithT(t)
	m := newMachine(t, nil)
	suite := `case "$1" in list) echo ` + m.checkout + ";; test) exit 1;; esac"
	g.Expect(os.WriteFile(filepath.Join(m.dir, "go"), []byte("#!/bin/bash\n"+suite), 0o700)).To(Succeed())
	session := m.start(t, []string{"KIND_NODE_IMAGE=node", "KIND_CONFIG=config.yaml"}, "test", "--name", "mine")
	g.Eventually(session, time.Minute).Should(gexec.Exit(exitFailed))
	g.Expect(m.did(t)).To(And(
		MatchRegexp(`(?m)^make .*image IMAGE=quell-manager:e2e$`),
		MatchRegexp(`(?m)^kind create cluster --name mine --kubeconfig \S+ --wait 3m .*--image node`), ContainSubstring("--config config.yaml"),
		MatchRegexp(`(?m)^kind load docker-image --name mine quell-manager:e2e quell-e2e-server:1 quell-e2e-server:2$`),
		MatchRegexp(`(?m)^make .*install IMAGE=quell-manager:e2e KUBECTL=kubectl$`),
		MatchRegexp(`(?m)^kind export logs --name mine \S+/bin/e2e-[0-9-]+/nodes\nkind delete cluster --name mine --kubeconfig \S+$`),
	))
	kept, err := filepath.Glob(filepath.Join(m.checkout, "bin", "e2e-*", "*"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(kept).To(HaveLen(4), "%v", kept)
}

func TestAnInterruptDeletesTheCluster(t *testing.T) {
	g := NewWithT(t)
	m := newMachine(t, map[string]string{"kind": `[ "$1" != load ] || sleep 300`})
	session := m.start(t, nil, "test", "--name", "mine")
	g.Eventually(func() string { return m.did(t) }, time.Minute).Should(ContainSubstring("kind load"))
	g.Expect(session.Command.Process.Signal(syscall.SIGINT)).To(Succeed())
	g.Eventually(session, time.Minute).Should(gexec.Exit(exitFailed))
	g.Expect(string(session.Err.Contents())).To(ContainSubstring("loading the images: stopped by a signal"))
	g.Expect(m.did(t)).To(ContainSubstring("kind delete cluster --name mine"))
}

func TestAClusterOfSomebodyElseIsNotDeleted(t *testing.T) {
	g := NewWithT(t)
	m := newMachine(t, map[string]string{"kind": `[ "$1" != get ] || echo quell-dev`})
	g.Eventually(m.start(t, nil, "up"), time.Minute).Should(gexec.Exit(exitFailed))
	g.Expect(m.did(t)).NotTo(Or(ContainSubstring("kind create"), ContainSubstring("kind delete")))
}

func TestUpKeepsTheCluster(t *testing.T) {
	g := NewWithT(t)
	m := newMachine(t, nil)
	session := m.start(t, nil, "up")
	g.Eventually(session, time.Minute).Should(gexec.Exit(0))
	kubeconfig := filepath.Join(m.checkout, "bin", "quell-dev.kubeconfig")
	g.Expect(string(session.Out.Contents())).To(ContainSubstring("export KUBECONFIG=" + kubeconfig))
	g.Expect(m.did(t)).To(And(ContainSubstring("kind create cluster --name quell-dev --kubeconfig "+kubeconfig), Not(ContainSubstring("kind delete"))))

	g.Eventually(m.start(t, nil, "down"), time.Minute).Should(gexec.Exit(0))
	g.Expect(m.did(t)).To(ContainSubstring("kind delete cluster --name quell-dev --kubeconfig " + kubeconfig))
}
