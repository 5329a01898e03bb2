package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/hduolab/quell/test/checkout"
	"github.com/hduolab/quell/test/localcluster"
	"github.com/hduolab/quell/test/naive"
	"github.com/hduolab/quell/test/program"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	pollEvery     = 50 * time.Millisecond
	settleTimeout = 2 * time.Minute
	// plainEvery is how often the figures are told without a terminal.
	plainEvery = 5 * time.Second
	// tail is the end of an act in which it has calmed down, if it does.
	tail = 5 * time.Second
)

// story is everything that one run works with.
type story struct {
	options
	screen   *screen
	cluster  *localcluster.Cluster
	user     client.Client
	plugin   string // kubectl quell
	operator *operator
	meter    *meter
	// noUsage says why processor times are not measured, if so.
	noUsage string
	acts    []*act
	storms  []storm
	// fail ends the story because something ended by itself.
	fail context.CancelCauseFunc
}

// run tells the story, stops what it started, and leaves the page of what was measured, however it ended.
func run(ctx context.Context, o options, out io.Writer) (err error) {
	if err := writable(o.page); err != nil {
		return err
	}
	inner, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	s := &story{options: o, screen: newScreen(out), fail: fail}
	s.cluster, err = localcluster.Start(ctx, localcluster.Options{ControlPlaneOnly: true, Log: s.screen})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.cluster.Stop()) }()
	go func() {
		if err := s.cluster.Wait(inner); err != nil {
			fail(fmt.Errorf("the cluster failed: %w", err))
		}
	}()
	err = s.tell(inner)
	if err != nil && inner.Err() != nil { // what the act says only follows from it
		err = context.Cause(inner)
	}
	if ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	return errors.Join(err, s.stopOperator(), s.conclude())
}

func (s *story) tell(ctx context.Context) error {
	if err := s.prepare(ctx); err != nil {
		return err
	}
	measuring, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := s.meter.run(measuring, s.show); err != nil {
			s.fail(err)
		}
	}()
	defer func() { stop(); <-ended }()
	for _, act := range []func(context.Context) error{s.actNaive, s.actNamed, s.actHeld, s.actMended, s.actChanged} {
		if err := act(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *story) prepare(ctx context.Context) error {
	s.screen.say("building kubectl quell")
	s.plugin = filepath.Join(s.cluster.DataDir(), "kubectl-quell") // which goes with the cluster
	if err := checkout.Build(ctx, "kubectl-quell", s.plugin); err != nil {
		return err
	}
	if err := naive.Install(ctx, s.cluster.Config()); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := naive.AddToScheme(scheme); err != nil {
		return err
	}
	var err error
	if s.user, err = client.New(s.cluster.Config(), client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	if _, err := s.cluster.CPUTime(localcluster.APIServer); err != nil {
		s.noUsage = err.Error()
		s.screen.say("processor times are not measured: %s", s.noUsage)
	}
	s.meter, err = newMeter(s.cluster, s.noUsage == "")
	return err
}

// act is one part of the story, and what was measured in it.
type act struct {
	Number      int
	Name, Title string
	From, To    time.Time
	samples     samples
	// What happened, and why.
	What, Why string
}

// Writes is the number of the operator's writes in the act.
func (a *act) Writes() int { return a.samples.writes() }

// Rate is in writes per second, AtEnd the same for the last seconds.
func (a *act) Rate() float64  { return a.samples.rate() }
func (a *act) AtEnd() float64 { return a.samples.between(a.To.Add(-tail-step/2), a.To).rate() }

// Cores is the processor time of API server and etcd per time.
func (a *act) Cores() float64 { return a.samples.cores() }

// Seconds is the length of the act.
func (a *act) Seconds() float64 { return a.To.Sub(a.From).Seconds() }

// begin begins an act.
func (s *story) begin(name, title, why string) (*act, error) {
	from, err := s.meter.take()
	if err != nil {
		return nil, err
	}
	a := &act{Number: len(s.acts) + 1, Name: name, Title: title, Why: why, From: from}
	s.acts = append(s.acts, a)
	s.screen.say("\nact %d: %s", a.Number, title)
	return a, nil
}

// end ends it, and says what happened in it.
func (s *story) end(a *act, format string, args ...any) error {
	if err := s.measure(a); err != nil {
		return err
	}
	a.What = fmt.Sprintf(format, args...)
	s.screen.say("%s%s in %.0f s: %s writes/s, at the end %s writes/s%s", indent, count(a.Writes(), "write"), a.Seconds(), number(a.Rate()),
		number(a.AtEnd()), s.withCores(a.Cores()))
	return nil
}

func (s *story) measure(a *act) error {
	to, err := s.meter.take()
	a.To, a.samples = to, s.meter.all().between(a.From, to)
	return err
}

func (s *story) withCores(cores float64) string {
	if s.noUsage != "" {
		return ""
	}
	return fmt.Sprintf("; API server and etcd took %.2f cores", cores)
}

func (s *story) actNaive(ctx context.Context) error {
	s.screen.say("\nan operator starts, and somebody creates %s", s.widgets())
	if err := s.startOperator(ctx, naive.SubSecondStamp); err != nil {
		return err
	}
	if err := s.createWidgets(ctx); err != nil {
		return err
	}
	a, err := s.begin("naive", "the operator writes into status when it last reconciled; nobody touches anything",
		"Each write raises resourceVersion, the watch delivers the change, and a change is a reason to reconcile: the operator wakes "+
			"itself. Nothing brakes it but the speed of API server, etcd and operator.")
	if err != nil {
		return err
	}
	if err := program.Pause(ctx, s.naive); err != nil {
		return err
	}
	return s.end(a, "An operator writes the time of its last reconcile into the status of %s. Nobody touched them, and nothing was left to do.",
		s.widgets())
}

func (s *story) actNamed(ctx context.Context) error {
	a, err := s.begin("named", "who is it? kubectl quell knows nothing of this operator, and looks at all custom resources",
		"It watches, compares successive versions of what is written most, and sees which fields move and whose entry in managedFields "+
			"moves with them. It writes nothing, and needs no audit log.")
	if err != nil {
		return err
	}
	if s.storms, err = s.askPlugin(ctx); err != nil {
		return err
	}
	if len(s.storms) == 0 {
		return s.end(a, "kubectl quell watched for %s, and was not sure of any storm: that was too short a time.", s.named)
	}
	return s.end(a, "kubectl quell watched for %s without being told where to look. It named the object, the field, the field manager and the "+
		"mistake; the verdict is below.", s.named)
}

func (s *story) actHeld(ctx context.Context) error {
	if err := s.stopOperator(); err != nil {
		return err
	}
	a, err := s.begin("held", "the same operator, mistake included, takes over on controller/ssa.StatusWriter",
		"StatusWriter sees that the content differs each time although nothing it was computed from does. It lets 20 writes a minute "+
			"pass for each object, then one after each pause of 5 s, 10 s, 20 s and so on up to 5 min.")
	if err != nil {
		return err
	}
	before, err := calls()
	if err != nil {
		return err
	}
	if err := s.startOperator(ctx, naive.OnStatusWriter); err != nil {
		return err
	}
	if err := program.Pause(ctx, s.held); err != nil {
		return err
	}
	after, err := calls()
	if err != nil {
		return err
	}
	held := after["SelfChurn"] - before["SelfChurn"]
	s.screen.say("%sStatusWriter answered SelfChurn, the content moves by itself, to %s", indent, count(held, "reconcile"))
	return s.end(a, "The same operator hands the same status to StatusWriter, the moving time included, and takes over the same objects. "+
		"StatusWriter let the first writes pass, and then answered %s with SelfChurn: the content moves by itself.", count(held, "reconcile"))
}

func (s *story) actMended(ctx context.Context) error {
	if err := s.stopOperator(); err != nil {
		return err
	}
	a, err := s.begin("mended", "the time moves only when something else in status does; the operator starts anew on all Widgets",
		"The desired status is compared with what managedFields say that the operator owns. Equal means that no request is sent, "+
			"after a restart too: nothing needs to be remembered.")
	if err != nil {
		return err
	}
	before, err := calls()
	if err != nil {
		return err
	}
	if err := s.startOperator(ctx, naive.Mended); err != nil {
		return err
	}
	var unchanged int
	err = s.await(ctx, "the operator to reconcile each Widget", func() (bool, error) {
		after, err := calls()
		sum := 0
		for outcome := range after {
			sum += after[outcome] - before[outcome]
		}
		unchanged = after["Unchanged"] - before["Unchanged"]
		return sum >= s.objects, err
	})
	if err != nil {
		return err
	}
	s.screen.say("%s%s found nothing to write", indent, count(unchanged, "reconcile"))
	if err := program.Pause(ctx, s.mended); err != nil {
		return err
	}
	return s.end(a, "The remedy of the verdict: the time moves only when something else in status does. The operator started anew and looked at %s; "+
		"%s found nothing to write.", s.widgets(), count(unchanged, "reconcile"))
}

func (s *story) actChanged(ctx context.Context) error {
	a, err := s.begin("changed", "somebody changes the spec of one Widget",
		"The operator hears of its own write, compares, and finds nothing more to do: there the loop ends. No change of the spec is "+
			"missed for that.")
	if err != nil {
		return err
	}
	widget := naive.NewWidget(metav1.NamespaceDefault, widgetName(0))
	key := client.ObjectKeyFromObject(widget)
	const size = 2
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"size":%d}}`, size))
	if err := s.user.Patch(ctx, widget, patch); err != nil {
		return fmt.Errorf("change the spec of Widget %s: %w", key, err)
	}
	err = s.await(ctx, "the status to tell of the change", func() (bool, error) {
		err := s.user.Get(ctx, key, widget)
		return err == nil && widget.Status.Size != nil && *widget.Status.Size == size, err
	})
	if err != nil {
		return err
	}
	if err := program.Pause(ctx, s.changed); err != nil {
		return err
	}
	return s.end(a, "Somebody set spec.size of Widget %s to %d. Its status told so at once, and nothing else was written.", key, size)
}

func (s *story) widgets() string { return count(s.objects, "Widget") }

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func widgetName(i int) string { return fmt.Sprintf("widget-%d", i+1) }

// createWidgets returns when each has its first status.
func (s *story) createWidgets(ctx context.Context) error {
	for i := range s.objects {
		if err := s.user.Create(ctx, naive.NewWidget(metav1.NamespaceDefault, widgetName(i))); err != nil {
			return fmt.Errorf("create a Widget: %w", err)
		}
	}
	return s.await(ctx, "the first status of each Widget", func() (bool, error) {
		var list naive.WidgetList
		err := s.user.List(ctx, &list)
		for _, widget := range list.Items {
			if widget.Status.LastUpdateTime == "" {
				return false, err
			}
		}
		return err == nil, err
	})
}

// await asks until the answer is yes.
func (s *story) await(ctx context.Context, what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, settleTimeout, fmt.Errorf("not so after %s", settleTimeout))
	defer cancel()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		if err := program.Pause(ctx, pollEvery); err != nil {
			return fmt.Errorf("wait for %s: %w", what, err)
		}
	}
}

// show tells the latest figures.
func (s *story) show() {
	all := s.meter.all()
	latest := all[max(0, len(all)-2):] // two, since the last may be short
	elapsed := all.to().Sub(all.from())
	cores := ""
	if s.noUsage == "" {
		cores = fmt.Sprintf("%.2f cores", latest.cores())
	}
	if !s.screen.isTerminal() {
		if elapsed/plainEvery > all[len(all)-1].from.Sub(all.from())/plainEvery {
			s.screen.say("%s%3.0f s %6s writes/s  %s", indent, elapsed.Seconds(), number(latest.rate()), cores)
		}
		return
	}
	lines := []string{"", s.curve(number(latest.rate())+" writes/s", all.series(writesOf))}
	if cores != "" {
		lines = append(lines, s.curve(cores, all.series(cpuOf)))
	}
	s.screen.show(append(lines, fmt.Sprintf("%18.0f s; Ctrl-C ends it", elapsed.Seconds()))...)
}

// curve is a value with what it was before.
func (s *story) curve(value string, values []float64) string {
	const label, gap = 18, 2
	return fmt.Sprintf("%*s%s%s", label, value, strings.Repeat(" ", gap), sparkline(values, s.screen.width()-label-gap-1))
}
