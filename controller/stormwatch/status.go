package stormwatch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	quellv1alpha1ac "github.com/hduolab/quell/applyconfig/quell/v1alpha1"
	"github.com/hduolab/quell/controller/ssa"
	"github.com/hduolab/quell/controller/storm"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/ptr"
)

// Further reasons of Ready, and those of StormDetected.
const (
	reasonWatching        = "Watching"
	reasonDiscoveryFailed = "DiscoveryFailed"
	reasonWriteStorm      = "WriteStorm"
	reasonNoStorm         = "NoStorm"
	reasonNothingWatched  = "NothingWatched"
)

// reasonOver is that of a condition that is False instead of absent.
const reasonOver = "Over"

// knownWithin is how long a new storm waits for the name of its manager.
const knownWithin = 5 * time.Second

// maxMessage bounds a condition's message in bytes.
const maxMessage = 1024

// decide is what a look makes of what was seen: what the next one has to know, the full status, and how urgent it is to write that.
// The status is nil until it is known how all watches are, and who makes a storm: what is on its way need not be told.
func decide(before memory, seen observed) (memory, *quellv1alpha1.StormWatchStatus, urgency) {
	after := before
	after.storms = followStorms(before.storms, seen.findings, seen.terms, seen.now)
	after.coverage = followWatches(before.coverage, seen.watches, seen.now)
	after.failing = before.failing.see(seen.discoveryFailed, hold, seen.now)
	after.count = roundedCount(before.count, len(after.storms))
	if after.coverage.isSettled() && (seen.isDiscovered || after.failing.value) {
		after.settled = seen.watch.Generation
	}
	if after.settled != seen.watch.Generation {
		return after, nil, nothing
	}
	status := describe(after, seen)
	u := urgencyOf(&seen.watch.Status, status)
	if u == alarm && isEarly(begun(&seen.watch.Status, status), seen.now) {
		return after, nil, nothing
	}
	return after, status, u
}

// isEarly reports whether all that is new are storms whose manager will be known in a moment, if it will be at all: what they do
// is watched in full only now.
func isEarly(storms []*quellv1alpha1.Storm, now time.Time) bool {
	for _, s := range storms {
		if len(s.Managers) > 0 || now.Sub(s.Since.Time) >= knownWithin {
			return false
		}
	}
	return len(storms) > 0
}

// describe puts what is known into words. Transition times are left to the writer.
func describe(m memory, seen observed) *quellv1alpha1.StormWatchStatus {
	status := &quellv1alpha1.StormWatchStatus{
		ObservedGeneration: ptr.To(seen.watch.Generation),
		Watched:            ptr.To(m.coverage.watched()),
		StormCount:         ptr.To(int32(m.count)),
		NotWatched:         notWatched(m.coverage, seen.missing, seen.outside),
	}
	for _, o := range namedOf(m.storms, seen.terms) {
		status.Storms = append(status.Storms, o.row())
	}
	status.Conditions = append(status.Conditions, readiness(status.NotWatched, m.failing.value)...)
	status.Conditions = append(status.Conditions, detection(status))
	status.Conditions = append(status.Conditions, denials(seen.watch, status.Conditions)...)
	for i := range status.Conditions {
		status.Conditions[i].ObservedGeneration = seen.watch.Generation
	}
	slices.SortFunc(status.Conditions, func(a, b metav1.Condition) int { return cmp.Compare(a.Type, b.Type) })
	return status
}

func (o ongoing) row() quellv1alpha1.Storm {
	return quellv1alpha1.Storm{
		Group: o.object.Group, Resource: o.object.Resource, Namespace: o.object.Namespace, Name: o.object.Name,
		Verdict: string(o.verdict.value), Managers: o.managers, Fields: o.fields, Rate: rateWords(o.rate.value),
		Since: &metav1.Time{Time: o.since}, Remedy: o.verdict.value.Remedy(),
	}
}

// readiness is Ready, and Stalled where a person has to act, or Reconciling where it may pass.
func readiness(rows []quellv1alpha1.NotWatched, isDiscoveryFailing bool) []metav1.Condition {
	reason, kind := reasonWatching, ""
	if isDiscoveryFailing {
		reason, kind = reasonDiscoveryFailed, quellv1alpha1.ConditionReconciling
	}
	for _, r := range []string{reasonFailing, reasonClusterScoped, reasonNotWatchable, reasonNotFound, reasonForbidden} {
		if slices.ContainsFunc(rows, func(n quellv1alpha1.NotWatched) bool { return n.Reason == r }) {
			reason, kind = r, quellv1alpha1.ConditionStalled
			if r == reasonFailing {
				kind = quellv1alpha1.ConditionReconciling
			}
		}
	}
	message := map[string]string{
		reasonWatching:        "everything that spec asks for is watched",
		reasonDiscoveryFailed: "a part of the cluster's API cannot be discovered, as when an extension API server is away; the operator's log says which",
	}[reason]
	message = cmp.Or(message, "not everything that spec asks for is watched; status.notWatched says what is not, and what to do")
	if kind == "" {
		return []metav1.Condition{{Type: quellv1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: reason, Message: message}}
	}
	return []metav1.Condition{
		{Type: quellv1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: message},
		{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message},
	}
}

// denials deny in words what is over and would stay as it is if it were left out, since another field manager owns it too.
func denials(watch *quellv1alpha1.StormWatch, told []metav1.Condition) []metav1.Condition {
	var denied []metav1.Condition
	for _, kind := range []string{quellv1alpha1.ConditionReconciling, quellv1alpha1.ConditionStalled} {
		isThere := meta.FindStatusCondition(watch.Status.Conditions, kind) != nil
		if isThere && meta.FindStatusCondition(told, kind) == nil && ssa.IsSharedCondition(watch, statusManager, kind) {
			denied = append(denied, metav1.Condition{
				Type: kind, Status: metav1.ConditionFalse, Reason: reasonOver,
				Message: "this is over; the condition stays because another field manager owns it too",
			})
		}
	}
	return denied
}

func detection(status *quellv1alpha1.StormWatchStatus) metav1.Condition {
	c := metav1.Condition{Type: quellv1alpha1.ConditionStormDetected, Status: metav1.ConditionFalse, Reason: reasonNoStorm, Message: "no storm goes on in what is watched"}
	switch {
	case len(status.Storms) > 0:
		c.Status, c.Reason = metav1.ConditionTrue, reasonWriteStorm
		c.Message = bounded(stormWords(&status.Storms[0])+"; status.storms has all", maxMessage)
	case *status.Watched == 0 && len(status.NotWatched) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, reasonNothingWatched, "nothing of what spec asks for is watched"
	}
	return c
}

// stormWords name a storm without anything that moves.
func stormWords(s *quellv1alpha1.Storm) string {
	words := fmt.Sprintf("%s on %s", s.Verdict, objectOf(s))
	if len(s.Managers) > 0 {
		names := make([]string, len(s.Managers))
		for i, manager := range s.Managers {
			names[i] = fmt.Sprintf("%q", manager)
		}
		words += " by " + strings.Join(names, " and ")
	}
	if len(s.Fields) > 0 {
		words += ", field " + s.Fields[0]
	}
	return words
}

// bounded cuts s to a length in bytes, and no character in two: the API server would store another text than was sent, and each look
// would find a difference.
func bounded(s string, length int) string { return strings.ToValidUTF8(s[:min(len(s), length)], "") }

// urgencyOf says what it would be that a write of one status in the place of another tells.
func urgencyOf(was, is *quellv1alpha1.StormWatchStatus) urgency {
	switch {
	case ptr.Deref(was.ObservedGeneration, -1) != *is.ObservedGeneration:
		return answer
	case len(begun(was, is)) > 0 || tellsMore(was, is) || readyIn(was) != readyIn(is):
		return alarm
	case !equality.Semantic.DeepEqual(withoutDetails(was), withoutDetails(is)):
		return change
	case !equality.Semantic.DeepEqual(withoutTimes(was), withoutTimes(is)):
		return detail
	}
	return nothing
}

// begun are the storms that a status names and the one before does not, ended the other way round.
func begun(was, is *quellv1alpha1.StormWatchStatus) []*quellv1alpha1.Storm {
	var more []*quellv1alpha1.Storm
	for i := range is.Storms {
		if !names(was, &is.Storms[i]) {
			more = append(more, &is.Storms[i])
		}
	}
	return more
}

// tellsMore reports whether a storm of which no manager, no field or no value was known has become one of which there is.
func tellsMore(was, is *quellv1alpha1.StormWatchStatus) bool {
	for i := range is.Storms {
		s := &is.Storms[i]
		for j := range was.Storms {
			o := &was.Storms[j]
			gained := len(o.Managers) == 0 && len(s.Managers) > 0 || len(o.Fields) == 0 && len(s.Fields) > 0 ||
				o.Verdict == string(storm.ValuesNotSeen) && s.Verdict != o.Verdict
			if objectOf(o) == objectOf(s) && gained {
				return true
			}
		}
	}
	return false
}

func names(status *quellv1alpha1.StormWatchStatus, s *quellv1alpha1.Storm) bool {
	return slices.ContainsFunc(status.Storms, func(o quellv1alpha1.Storm) bool { return objectOf(&o) == objectOf(s) })
}

// readyIn is what Ready says, as far as somebody waits for it.
func readyIn(status *quellv1alpha1.StormWatchStatus) string {
	if c := meta.FindStatusCondition(status.Conditions, quellv1alpha1.ConditionReady); c != nil {
		return string(c.Status) + c.Reason
	}
	return ""
}

func withoutTimes(status *quellv1alpha1.StormWatchStatus) *quellv1alpha1.StormWatchStatus {
	status = status.DeepCopy()
	for i := range status.Conditions {
		status.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	slices.SortFunc(status.Conditions, func(a, b metav1.Condition) int { return cmp.Compare(a.Type, b.Type) })
	return status
}

func withoutDetails(status *quellv1alpha1.StormWatchStatus) *quellv1alpha1.StormWatchStatus {
	status = withoutTimes(status)
	status.StormCount = nil
	for i := range status.Storms {
		status.Storms[i].Rate = ""
	}
	return status
}

// configuration is the full apply configuration of a status.
func configuration(name string, status *quellv1alpha1.StormWatchStatus) *quellv1alpha1ac.StormWatchApplyConfiguration {
	c := quellv1alpha1ac.StormWatchStatus().
		WithObservedGeneration(*status.ObservedGeneration).
		WithWatched(*status.Watched).
		WithStormCount(*status.StormCount)
	for i := range status.Storms {
		c.WithStorms(stormConfiguration(&status.Storms[i]))
	}
	for _, n := range status.NotWatched {
		c.WithNotWatched(quellv1alpha1ac.NotWatched().WithGroup(n.Group).WithResource(n.Resource).WithReason(n.Reason).WithMessage(n.Message))
	}
	for _, o := range status.Conditions {
		c.WithConditions(metav1ac.Condition().WithType(o.Type).WithStatus(o.Status).WithReason(o.Reason).WithMessage(o.Message).
			WithObservedGeneration(o.ObservedGeneration))
	}
	return quellv1alpha1ac.StormWatch(name).WithStatus(c)
}

// stormConfiguration leaves out what is empty.
func stormConfiguration(s *quellv1alpha1.Storm) *quellv1alpha1ac.StormApplyConfiguration {
	c := quellv1alpha1ac.Storm().WithResource(s.Resource).WithName(s.Name).WithVerdict(s.Verdict).
		WithManagers(s.Managers...).WithFields(s.Fields...).WithRate(s.Rate).WithSince(*s.Since)
	if s.Group != "" {
		c.WithGroup(s.Group)
	}
	if s.Namespace != "" {
		c.WithNamespace(s.Namespace)
	}
	if s.Remedy != "" {
		c.WithRemedy(s.Remedy)
	}
	return c
}
