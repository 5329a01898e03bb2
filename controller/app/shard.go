package app

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/fieldowners"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

const (
	// LabelShard on an App names the Shard that works on it. Its children carry the same.
	LabelShard = "quell.dev/shard"
	// shardManager owns the label of what an App has on arrival and does not want; it is about to be deleted.
	shardManager = "quell-shard"
	// handover is how long the shard that an App has left may take to end what it had under way for it.
	handover = 30 * time.Second
)

// Shard is the part of a cluster's Apps that one process works on and caches: those with this value of LabelShard or, when it is
// empty, those without the label.
type Shard string

// Validate returns an error when Apps, and a Lease, cannot be named by the shard's name.
func (s Shard) Validate() error {
	if s == "" {
		return nil
	}
	if faults := validation.IsDNS1123Label(string(s)); len(faults) > 0 {
		return fmt.Errorf("%q cannot name a shard: %s", string(s), strings.Join(faults, "; "))
	}
	return nil
}

// selector selects what is the shard's and has further labels.
func (s Shard) selector(further labels.Set) labels.Selector {
	if s != "" {
		set := labels.Set{LabelShard: string(s)}
		maps.Copy(set, further)
		return labels.SelectorFromSet(set)
	}
	unlabelled, _ := labels.NewRequirement(LabelShard, selection.DoesNotExist, nil) // which fails only for keys that are none
	return labels.SelectorFromSet(further).Add(*unlabelled)
}

// children selects the shard's children of Apps.
func (s Shard) children() labels.Selector {
	return s.selector(labels.Set{LabelManagedBy: ManagedBy})
}

func (s Shard) has(app *quellv1alpha1.App) bool {
	return s.selector(nil).Matches(labels.Set(app.Labels))
}

// isElsewhere reports whether a child of the App is in another shard than the App: the App came from there, or somebody relabelled
// the child. Our cache does not have it then, unless it is an autoscaler.
func isElsewhere(live client.Object, app *quellv1alpha1.App) bool {
	return live.GetLabels()[LabelShard] != app.Labels[LabelShard] && metav1.IsControlledBy(live, app)
}

func hasElsewhere(seen observed) bool {
	for _, live := range seen.live {
		if isElsewhere(live, seen.app) {
			return true
		}
	}
	return false
}

// arrivals are the Apps that came from another shard. Safe for concurrent use.
type arrivals struct {
	mu sync.Mutex
	// at is when each was first seen here, zero once what it left behind has been looked for a second time.
	at map[types.NamespacedName]time.Time
}

func newArrivals() *arrivals { return &arrivals{at: map[types.NamespacedName]time.Time{}} }

// search reports whether to look for what an App left in another shard, and when to do so again; zero means that this is over.
// elsewhere tells that one of the children that it wants is there.
func (a *arrivals) search(key types.NamespacedName, elsewhere bool, now time.Time) (do bool, again time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	since, known := a.at[key]
	switch {
	case !known && !elsewhere:
		return false, 0
	case !known:
		a.at[key] = now
		return true, handover
	case since.IsZero():
		if !elsewhere {
			delete(a.at, key)
		}
		return false, 0
	case now.Sub(since) < handover:
		return elsewhere, handover - now.Sub(since)
	}
	a.at[key] = time.Time{}
	return true, 0
}

func (a *arrivals) has(app *quellv1alpha1.App) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, known := a.at[client.ObjectKeyFromObject(app)]
	return known
}

func (a *arrivals) forget(key types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.at, key)
}

// takeIn brings those children of an App that came from another shard into ours that the App does not want any more: our cache has
// them then, and they are removed like any other. Those that it wants come by being applied. As long as the App's own children are
// not all here a crash does not keep them from being looked for. After a while they are looked for once more, for the
// other shard may have had work under way; again is the time until then.
func (r *Reconciler) takeIn(ctx context.Context, seen observed, now time.Time) (again time.Duration, err error) {
	if deletionPending(seen.app) || isSuspended(seen.app) {
		return 0, nil
	}
	search, again := r.arrived.search(client.ObjectKeyFromObject(seen.app), hasElsewhere(seen), now)
	if !search {
		return again, nil
	}
	for _, k := range kinds {
		if err := r.takeInKind(ctx, k, seen.app); err != nil && !isUnserved(err) {
			return 0, err
		}
	}
	return again, nil
}

func (r *Reconciler) takeInKind(ctx context.Context, k kind, app *quellv1alpha1.App) error {
	gvk, err := apiutil.GVKForObject(k.object(), r.Client.Scheme())
	if err != nil {
		return err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk)
	ours := client.MatchingLabels{LabelInstance: app.Name, LabelManagedBy: ManagedBy}
	if err := r.Reader.List(ctx, list, client.InNamespace(app.Namespace), ours); err != nil {
		return fmt.Errorf("look for %ss that App %q left in another shard: %w", k.name, app.Name, err)
	}
	for i := range list.Items {
		left := &list.Items[i]
		left.SetGroupVersionKind(gvk)
		// What is wanted gets the right label, or loses the wrong one, as it is applied; the latter not while others own it too.
		isApplied := k.wanted(app) && left.Name == k.childName(app) && (app.Labels[LabelShard] != "" || !isLabelShared(left))
		if isElsewhere(left, app) && !isApplied {
			if err := r.relabel(ctx, left, app.Labels[LabelShard]); err != nil {
				return err
			}
		}
	}
	return nil
}

// isLabelShared reports whether others than our applies own the shard label of a child.
func isLabelShared(left *metav1.PartialObjectMetadata) bool {
	owners := fieldowners.OwnersOf(fieldowners.Parse(left.ManagedFields), fieldpath.MakePathOrDie("metadata", "labels", LabelShard))
	return slices.ContainsFunc(owners, func(o fieldowners.Owner) bool { return o.Manager != ChildManager })
}

// relabel moves an object into a shard, if it still is what was seen; if it is not, that is an error and the next look decides.
func (r *Reconciler) relabel(ctx context.Context, left *metav1.PartialObjectMetadata, shard string) error {
	label := map[string]any{LabelShard: nil}
	if shard != "" {
		label[LabelShard] = shard
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": left.UID, "resourceVersion": left.ResourceVersion, "labels": label,
	}})
	if err != nil {
		return err
	}
	err = r.Client.Patch(ctx, left, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(shardManager))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("take %s %q over from another shard: %w", left.Kind, left.Name, err)
	}
	return nil
}
