package fieldmanagers_test

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/hduolab/quell/test/localcluster"
)

// shell is one bash for the whole session, so that $?, background jobs and the current folder are as in a terminal.
type shell struct {
	dir string
	in  io.Writer
	out *bufio.Reader
	// mark ends the output of a command.
	mark string
}

func newShell() *shell {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	kubeconfig := filepath.Join(bin, "kubeconfig")
	Expect(localcluster.WriteKubeconfig(kubeconfig, cluster.Config())).To(Succeed())
	cmd := exec.Command("bash", "--noprofile", "--norc")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+bin, "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // with its background jobs
	in, err := cmd.StdinPipe()
	Expect(err).NotTo(HaveOccurred())
	out, err := cmd.StdoutPipe()
	Expect(err).NotTo(HaveOccurred())
	cmd.Stderr = cmd.Stdout
	Expect(cmd.Start()).To(Succeed())
	DeferCleanup(func() {
		Expect(syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)).To(Succeed())
		_ = cmd.Wait() // it was killed
	})
	return &shell{dir: dir, in: in, out: bufio.NewReader(out), mark: "--- " + rand.Text()}
}

// run types a command and returns what it writes, which ends with a line's end if it is not empty.
func (s *shell) run(command string) string {
	GinkgoHelper()
	// The command's exit code is put back, for an echo $? that may come next.
	_, err := fmt.Fprintf(s.in, "%s\ncode=$?; printf '\\n%%s\\n' '%s'; (exit $code)\n", command, s.mark)
	Expect(err).NotTo(HaveOccurred())
	var out strings.Builder
	for {
		line, err := s.out.ReadString('\n')
		Expect(err).NotTo(HaveOccurred(), "%s: the shell ended: %s%s", command, out.String(), line)
		if line == s.mark+"\n" {
			break
		}
		out.WriteString(line)
	}
	text := strings.TrimRight(out.String(), "\n")
	if text != "" {
		text += "\n"
	}
	return text
}
