package main

import (
	"context"
	"fmt"

	"github.com/hduolab/quell/test/naive"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// agent is the user agent of the operator in all of its forms. Up to the slash it is the field manager of those that leave it to
// the API server.
const agent = "widget-operator/"

// operator is one that runs.
type operator struct {
	cancel context.CancelFunc
	ended  chan error
}

// startOperator starts the operator in a form. When it ends by itself, so does the story.
func (s *story) startOperator(ctx context.Context, form naive.Form) error {
	config := s.cluster.Config()
	config.UserAgent = agent
	mgr, err := naive.NewManager(config, naive.Options{Form: form, Workers: s.workers})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	s.operator = &operator{cancel, make(chan error, 1)}
	ended := s.operator.ended
	go func() {
		err := mgr.Start(ctx)
		if ctx.Err() == nil { // which is told once
			s.fail(fmt.Errorf("the operator ended by itself: %w", err))
			err = nil
		}
		ended <- err
	}()
	return nil
}

// stopOperator returns when its last request was answered.
func (s *story) stopOperator() error {
	if s.operator == nil {
		return nil
	}
	s.operator.cancel()
	err := <-s.operator.ended
	s.operator = nil
	return err
}

// calls is how often the library was asked to write until now, by what came of it.
func calls() (map[string]int, error) {
	families, err := metrics.Registry.Gather()
	if err != nil {
		return nil, fmt.Errorf("read the metrics of the operator: %w", err)
	}
	counts := map[string]int{}
	for _, family := range families {
		if family.GetName() != "quell_ssa_calls_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "outcome" {
					counts[label.GetValue()] += int(m.GetCounter().GetValue())
				}
			}
		}
	}
	return counts, nil
}
