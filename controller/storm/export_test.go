package storm

// Entries counts what a detector keeps: counters of its sketches, hot objects, and samples of these.
func (d *Detector) Entries() (counters, hot, samples int) {
	for _, s := range d.hot {
		samples += len(s.track.samples)
	}
	return d.objects.Len() + d.managers.Len() + d.resources.Len() + d.operations.Len(), len(d.hot), samples
}
