package program

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
)

const (
	// role makes this test binary a program.
	role  = "QUELL_TEST_PROGRAM"
	limit = time.Minute // against hanging, not a measure
)

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "alone":
		os.Exit(Run(untilAsked))
	case "attached":
		os.Exit(RunAttached(untilAsked))
	case "deaf":
		os.Exit(Run(func(ctx context.Context) error {
			_ = untilAsked(ctx)
			select {}
		}))
	case "parent":
		child := as("attached")
		child.Stdout = os.Stdout
		fmt.Println(child.Run())
	}
	os.Exit(m.Run())
}

func untilAsked(ctx context.Context) error {
	fmt.Println("ready:", os.Getpid())
	<-ctx.Done()
	fmt.Println("asked to end")
	klog.Error("what client-go says of a request that is cut off") // is not to be seen
	return errors.New("interrupted")
}

func as(name string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), role+"="+name)
	return cmd
}

func start(t *testing.T, name string) *gexec.Session {
	g := NewWithT(t)
	session, err := gexec.Start(as(name), t.Output(), t.Output())
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { <-session.Kill().Exited })
	g.Eventually(session, limit).Should(gbytes.Say("ready: .*\n"))
	return session
}

func TestASignalEndsAProgram(t *testing.T) {
	for name, signals := range map[string][]os.Signal{
		"alone": {os.Interrupt, syscall.SIGTERM}, "attached": {os.Interrupt, syscall.SIGTERM, syscall.SIGHUP},
	} {
		for _, s := range signals {
			g := NewWithT(t)
			session := start(t, name).Signal(s)
			g.Eventually(session, limit).Should(gexec.Exit(1), "%s, %s", name, s)
			g.Expect(session.Err).To(gbytes.Say("^error: interrupted\n$"))
		}
	}
}

func TestASecondSignalEndsItAtOnce(t *testing.T) {
	session := start(t, "deaf").Interrupt()
	NewWithT(t).Eventually(session, limit).Should(gbytes.Say("asked to end"))
	NewWithT(t).Eventually(func() *gexec.Session { return session.Interrupt() }, limit).Should(gexec.Exit())
}

func TestAnAttachedProgramEndsWithItsParent(t *testing.T) {
	session := start(t, "parent")
	var child int
	_, err := fmt.Sscanf(string(session.Out.Contents()), "ready: %d\n", &child)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = syscall.Kill(child, syscall.SIGKILL) }) // it has ended, if all is well
	session.Kill()
	NewWithT(t).Eventually(session.Out, limit).Should(gbytes.Say("asked to end"))
}

func TestRefuse(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Refuse(fmt.Errorf("flags: %w", pflag.ErrHelp), "./test/some")).To(Equal(0))
	g.Expect(Refuse(errors.New("unknown flag"), "./test/some")).To(Equal(2))
}

func TestPause(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Pause(t.Context(), time.Nanosecond)).To(Succeed())
	over := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	g.Expect(Pause(ctx, time.Hour)).To(MatchError(over))
}
