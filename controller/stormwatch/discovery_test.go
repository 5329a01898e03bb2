package stormwatch

import (
	"reflect"
	"testing"
	"time"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/storm"
	"github.com/hduolab/quell/controller/storm/live"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestWhenDiscoveryIsDue(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	all := live.Selector{CustomResources: true}
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for _, c := range []struct {
		name    string
		before  discovered
		changed time.Time
		want    bool
	}{
		{"at first", discovered{selector: all}, time.Time{}, true},
		{"soon after", discovered{selector: all, at: ago(30 * time.Second)}, time.Time{}, false},
		{"a minute later", discovered{selector: all, at: ago(time.Minute)}, time.Time{}, true},
		{"for another spec", discovered{at: ago(time.Second)}, time.Time{}, true},
		{"after a failure", discovered{selector: all, at: ago(10 * time.Second), failed: true}, time.Time{}, true},
		{"right after a failure", discovered{selector: all, at: ago(9 * time.Second), failed: true}, time.Time{}, false},
		{"after a change", discovered{selector: all, at: ago(30 * time.Second)}, ago(time.Second), true},
		{"while there are changes", discovered{selector: all, at: ago(30 * time.Second)}, ago(time.Second / 2), false},
		{"after one too many changes", discovered{selector: all, at: ago(4 * time.Second)}, ago(time.Second), false},
		{"after a change that was seen", discovered{selector: all, at: ago(20 * time.Second)}, ago(22 * time.Second), false},
	} {
		if got := c.before.isDue(all, c.changed, now); got != c.want {
			t.Errorf("%s: due is %t", c.name, got)
		}
	}
}

func TestSettings(t *testing.T) {
	if got := settingsOf(&quellv1alpha1.StormWatchSpec{}).storm; !reflect.DeepEqual(got, storm.Options{Rate: 1, WriterRate: 20}) {
		t.Errorf("defaults are %+v", got)
	}
	spec := &quellv1alpha1.StormWatchSpec{Thresholds: &quellv1alpha1.StormThresholds{
		WritesPerMinute: 30, ManagerWritesPerMinute: 600, PersistSeconds: 20,
	}}
	if got := settingsOf(spec).storm; !reflect.DeepEqual(got, storm.Options{Rate: 0.5, WriterRate: 10, Persist: 20 * time.Second}) {
		t.Errorf("settings are %+v", got)
	}
	spec.Thresholds = &quellv1alpha1.StormThresholds{WritesPerMinute: 30}
	if got := settingsOf(spec).storm; !reflect.DeepEqual(got, storm.Options{Rate: 0.5, WriterRate: 10}) {
		t.Errorf("settings without managerWritesPerMinute are %+v", got)
	}
	if got := (terms{threshold: 1.0 / 60}).quiet(); got != 3*time.Minute {
		t.Errorf("a storm of one write a minute has ended after %s", got)
	}
}

func TestWhatNamespacesLeaveOut(t *testing.T) {
	resource := func(name, kind string, isNamespaced bool) live.Resource {
		return live.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: name}, Kind: kind, IsNamespaced: isNamespaced}
	}
	pods, nodes, volumes := resource("pods", "Pod", true), resource("nodes", "Node", false), resource("persistentvolumes", "PersistentVolume", false)
	spec := &quellv1alpha1.StormWatchSpec{
		Namespaces: []string{"a"}, Kinds: []quellv1alpha1.StormWatchKind{{Group: "core", Kind: "Node"}, {Group: "core", Kind: "*"}},
	}
	inside, outside := within([]live.Resource{pods, nodes, volumes}, spec, selectorOf(spec))
	if !reflect.DeepEqual(inside, []live.Resource{pods}) || !reflect.DeepEqual(outside, []live.Resource{nodes}) {
		t.Errorf("inside are %v, outside %v", inside, outside)
	}
	if all := withFormer([]live.Resource{pods}, []live.Resource{pods, nodes}); !reflect.DeepEqual(all, []live.Resource{pods, nodes}) {
		t.Errorf("with the former ones it is %v", all)
	}
}

func TestEventsPerObject(t *testing.T) {
	now, a, b := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), storm.Key{Name: "a"}, storm.Key{Name: "b"}
	memory := &told{at: map[storm.Key]time.Time{}}
	if !memory.may(a, now) || memory.may(a, now.Add(59*time.Minute)) || !memory.may(b, now.Add(59*time.Minute)) || !memory.may(a, now.Add(time.Hour)) {
		t.Error("an object gets one event an hour")
	}
	if memory.may(b, now.Add(3*time.Hour)); len(memory.at) != 1 {
		t.Errorf("remembered are %v", memory.at)
	}
}
