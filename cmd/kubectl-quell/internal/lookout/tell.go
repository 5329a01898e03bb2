package lookout

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/printers"
)

// teller chooses how a session is shown: on a terminal as a table, elsewhere in lines, which give way to a report on the
// standard output.
func (o options) teller() teller {
	switch {
	case o.output.IsReport():
		return lines{o.frame.ErrOut}
	case printers.IsTerminal(o.frame.Out) && os.Getenv("TERM") != "dumb":
		return &screen{out: o.frame.Out, size: sizeOf(o.frame.Out), palette: o.frame.Palette(), isWide: o.output.Wide()}
	}
	return lines{o.frame.Out}
}

// lines tells each turn of a storm in a line.
type lines struct{ out io.Writer }

func (l lines) tell(s *session, news []happening) {
	for _, n := range news {
		fmt.Fprintln(l.out, s.to.UTC().Format(time.RFC3339)+" "+show.Escape(n.line()))
	}
}

func (l lines) tick(*session) {}
func (l lines) done()         {}

// size of a terminal in characters.
type size struct{ width, height int }

// sizeOf returns what tells the size of a terminal now.
func sizeOf(out io.Writer) func() size {
	return func() size {
		if f, isFile := out.(interface{ Fd() uintptr }); isFile {
			if width, height, err := term.GetSize(int(f.Fd())); err == nil && width > 0 && height > 0 {
				return size{width, height}
			}
		}
		return size{80, 24}
	}
}

// screen shows a table and paints it anew in its place.
type screen struct {
	out     io.Writer
	size    func() size
	palette show.Palette
	isWide  bool
	// painted is how many lines there are above the cursor, on a terminal of the size before.
	painted int
	before  size
}

func (s *screen) tell(session *session, _ []happening) { s.paint(session) }

// tick paints a terminal that has another size now.
func (s *screen) tick(session *session) {
	if s.size() != s.before {
		s.paint(session)
	}
}

// done wipes the table, so that the final one takes its place.
func (s *screen) done() {
	fmt.Fprint(s.out, s.back(s.size())+"\x1b[J")
	s.painted = 0
}

func (s *screen) paint(session *session) {
	current := s.size()
	table := session.view(s.isWide).render(current, s.palette)
	text := s.back(current) + "\x1b[?7l" // characters that are wider than counted must not break lines
	for _, line := range table {
		text += "\x1b[2K" + line + "\n"
	}
	fmt.Fprint(s.out, text+"\x1b[J\x1b[?7h")
	s.painted, s.before = len(table), current
}

// back leads to where the table begins. A terminal that has got another size may have broken or moved lines, each kind in its
// own way, and is wiped.
func (s *screen) back(current size) string {
	switch {
	case s.painted == 0:
		return ""
	case current != s.before:
		return "\x1b[H\x1b[2J"
	}
	return fmt.Sprintf("\r\x1b[%dA", s.painted)
}
