package app

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/ssa"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// quietTime is how long a rollout may make no progress before its Pods are looked at; from then on that is the first pause,
	// which doubles up to maxPause.
	quietTime = 10 * time.Second
	maxPause  = time.Minute
	// maxPods and maxEvents bound what one look reads.
	maxPods, maxEvents = 20, 20
	// annotationRevision is where the Deployment controller numbers ReplicaSets.
	annotationRevision = "deployment.kubernetes.io/revision"
)

// stuck is what is known of a rollout that is not done.
type stuck struct {
	// why it makes no progress, nil when that is not known.
	why *finding
	// again is when to look again, zero for a rollout that is done.
	again time.Duration
}

// standstills are the rollouts that are not done, by App. Safe for concurrent use on different Apps.
type standstills struct {
	mu   sync.Mutex
	apps map[types.NamespacedName]*standstill
}

// standstill is what is remembered of one rollout.
type standstill struct {
	uid        types.UID
	generation int64
	// since is when the rollout was first seen not to be done; next is when its Pods are looked at again, zero before the first time.
	since, next time.Time
	pause       time.Duration
	cause       *diagnosis
}

func newStandstills() *standstills { return &standstills{apps: map[types.NamespacedName]*standstill{}} }

// of is the look at this generation of an App.
func (l *standstills) of(app *quellv1alpha1.App, now time.Time) *standstill {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := client.ObjectKeyFromObject(app)
	known := l.apps[key]
	if known == nil || known.uid != app.UID || known.generation != app.Generation {
		known = &standstill{uid: app.UID, generation: app.Generation, since: now}
		if wasExplained(app) { // by an earlier process: else the cause would come and go with each restart
			known.next = now
		}
		l.apps[key] = known
	}
	return known
}

func (l *standstills) forget(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.apps, key)
}

// wasExplained reports whether the status gives a cause for this generation.
func wasExplained(app *quellv1alpha1.App) bool {
	return slices.ContainsFunc(app.Status.Conditions, func(c metav1.Condition) bool {
		return (c.Type == quellv1alpha1.ConditionReconciling || c.Type == quellv1alpha1.ConditionStalled) &&
			c.ObservedGeneration == app.Generation && slices.Contains(causeReasons, c.Reason)
	})
}

// wait is how long it is until the Pods are to be looked at.
func (l *standstill) wait(d *appsv1.Deployment, now time.Time) time.Duration {
	switch {
	case !l.next.IsZero():
		return l.next.Sub(now)
	case isStuck(d):
		return 0
	}
	return quietTime - min(now.Sub(l.since), now.Sub(lastProgress(d)))
}

// stuck is what is known, and needs another look in so long.
func (l *standstill) stuck(again time.Duration) stuck {
	s := stuck{again: again}
	if l.cause != nil {
		s.why = &l.cause.finding
	}
	return s
}

// whyStuck tells why a rollout that is not done makes no progress. The Pods are not watched but read, past the cache, and only
// after a while without progress, more and more rarely; a converged App costs nothing.
func (r *Reconciler) whyStuck(ctx context.Context, app *quellv1alpha1.App, children []applied) stuck {
	now := r.Clock.Now()
	d := unfinished(app, children)
	if d == nil {
		r.standing.forget(client.ObjectKeyFromObject(app))
		return stuck{}
	}
	l := r.standing.of(app, now)
	if d.Status.ObservedGeneration < d.Generation { // the Deployment's next status wakes us
		return l.stuck(quietTime)
	}
	if wait := l.wait(d, now); wait > 0 {
		return l.stuck(wait)
	}
	why, err := r.readCause(ctx, d, now)
	if err != nil {
		logf.FromContext(ctx).Error(err, "cannot tell why the rollout makes no progress")
	} else {
		l.cause = why.steady(l.cause)
	}
	l.pause = min(max(2*l.pause, quietTime), maxPause)
	l.next = now.Add(l.pause)
	return l.stuck(l.pause)
}

// unfinished is the App's Deployment if its rollout is not done and was not begun by this very reconcile.
func unfinished(app *quellv1alpha1.App, children []applied) *appsv1.Deployment {
	for _, c := range children {
		d, ok := c.current().(*appsv1.Deployment)
		if c.kind != kindDeployment || !ok || c.Wrote() {
			continue
		}
		if stalled, moving := rollout(app, d, c.Outcome == ssa.Unchanged); stalled != nil || moving != nil {
			return d
		}
	}
	return nil
}

func (r *Reconciler) readCause(ctx context.Context, d *appsv1.Deployment, now time.Time) (*diagnosis, error) {
	e := evidence{deployment: d, now: now}
	if len(refusedPods(e)) > 0 {
		return e.diagnose(), nil
	}
	hash, err := r.newestTemplate(ctx, d)
	if err != nil || hash == "" {
		return nil, err
	}
	var pods corev1.PodList
	if err := r.Reader.List(ctx, &pods, client.InNamespace(d.Namespace), client.Limit(maxPods), matching(d, hash)); err != nil {
		return nil, fmt.Errorf("list Pods of the newest ReplicaSet: %w", err)
	}
	e.pods = pods.Items
	if e.events, err = r.mountEvents(ctx, e.pods); err != nil {
		return nil, err
	}
	return e.diagnose(), nil
}

func matching(d *appsv1.Deployment, hash string) client.MatchingLabels {
	labels := client.MatchingLabels{appsv1.DefaultDeploymentUniqueLabelKey: hash}
	for key, value := range d.Spec.Selector.MatchLabels {
		labels[key] = value
	}
	return labels
}

// newestTemplate is the label value of the Pods of a Deployment's newest ReplicaSet, "" when there is none yet.
func (r *Reconciler) newestTemplate(ctx context.Context, d *appsv1.Deployment) (string, error) {
	var sets metav1.PartialObjectMetadataList
	sets.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSetList"))
	if err := r.Reader.List(ctx, &sets, client.InNamespace(d.Namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels)); err != nil {
		return "", fmt.Errorf("list ReplicaSets: %w", err)
	}
	for i := range sets.Items {
		s := &sets.Items[i]
		if metav1.IsControlledBy(s, d) && s.Annotations[annotationRevision] == d.Annotations[annotationRevision] {
			return s.Labels[appsv1.DefaultDeploymentUniqueLabelKey], nil
		}
	}
	return "", nil
}

// mountEvents are warnings about the first Pod, by name, that waits for its volumes; none when no Pod does.
func (r *Reconciler) mountEvents(ctx context.Context, pods []corev1.Pod) ([]eventsv1.Event, error) {
	var waiting []corev1.Pod
	for _, p := range pods {
		if waitsForVolumes(p) {
			waiting = append(waiting, p)
		}
	}
	if len(waiting) == 0 {
		return nil, nil
	}
	pod := slices.MinFunc(waiting, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	var events eventsv1.EventList
	about := fields.AndSelectors(
		fields.OneTermEqualSelector("regarding.uid", string(pod.UID)), fields.OneTermEqualSelector("type", corev1.EventTypeWarning))
	if err := r.Reader.List(ctx, &events, client.InNamespace(pod.Namespace), client.Limit(maxEvents), client.MatchingFieldsSelector{Selector: about}); err != nil {
		return nil, fmt.Errorf("list events of a Pod that waits for its volumes: %w", err)
	}
	return events.Items, nil
}

func waitsForVolumes(p corev1.Pod) bool {
	return p.DeletionTimestamp == nil && slices.ContainsFunc(
		slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses), func(s corev1.ContainerStatus) bool {
			return s.State.Waiting != nil && (s.State.Waiting.Reason == "ContainerCreating" || s.State.Waiting.Reason == "PodInitializing")
		})
}
