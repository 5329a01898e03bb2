// Package figures holds what the benchmarks measure, in the form in which it is kept beside docs/benchmarks.md. Nothing in
// it is computed from other figures: ratios and exponents are the page's.
package figures

import "time"

// Machine is where and with what a run was made.
type Machine struct {
	// Date is the day of the run, as 2006-01-02.
	Date string `json:"date"`
	// Processor is its model as the kernel names it.
	Processor string `json:"processor"`
	Cores     int    `json:"cores"`
	// Memory is in bytes.
	Memory int64  `json:"memoryBytes"`
	OS     string `json:"os"`
	Go     string `json:"go"`
	// Modules maps the modules that matter (Kubernetes, controller-runtime, those of the rivals) to their versions.
	Modules map[string]string `json:"modules"`
}

// Requests is what each way to write status asked of the API server during the life of an App.
type Requests struct {
	Machine Machine `json:"machine"`
	// Phases are the steps of the life, in their order.
	Phases []Phase      `json:"phases"`
	Rows   []RequestRow `json:"rows"`
}

// Phase is one step of an App's life.
type Phase struct {
	// Name is one word or two; What says what happens in it.
	Name string `json:"name"`
	What string `json:"what"`
	// Floor is the fewest writes with which all that is worth showing is shown.
	Floor int `json:"floor"`
}

// RequestRow is one contestant in one phase.
type RequestRow struct {
	// Contestant is the Name of a rivals.Rival.
	Contestant string `json:"contestant"`
	Phase      string `json:"phase"`
	// Verbs counts requests by verb and resource, as in "patch apps/status". Watches count when they begin.
	Verbs map[string]int `json:"verbs"`
	// Writes are those of the requests that ask for a change, but for Events, Changes those of the writes that changed what is stored.
	// The rivals record no Events; Quell's are among the Verbs.
	Writes  int `json:"writes"`
	Changes int `json:"changes"`
	// Refused are the requests with an HTTP status of 400 or more.
	Refused int `json:"refused"`
	// Missed says what should have been seen or healed in this phase and was not; empty when nothing.
	Missed string `json:"missed,omitempty"`
	// Endless tells that the requests had not ended when the phase did; they are then those of Seconds.
	Endless bool    `json:"endless,omitempty"`
	Seconds float64 `json:"seconds"`
}

// NoOp is what a reconcile costs in which nothing has to be written, and its parts.
type NoOp struct {
	Machine Machine     `json:"machine"`
	Results []Benchmark `json:"results"`
}

// Benchmark is the result of one Go benchmark, the median of its runs.
type Benchmark struct {
	// Name as in Reconcile/quell or PreCheck/remembered.
	Name   string  `json:"name"`
	Time   float64 `json:"nsPerOp"`
	Bytes  float64 `json:"bytesPerOp"`
	Allocs float64 `json:"allocsPerOp"`
	Runs   int     `json:"runs"`
	// Spread is the largest run's time divided by the smallest's.
	Spread float64 `json:"spread"`
}

// Scale is how the operator fares with many Apps.
type Scale struct {
	Machine Machine    `json:"machine"`
	Runs    []ScaleRun `json:"runs"`
}

// ScaleRun is one number of Apps, each with its children.
type ScaleRun struct {
	Apps int `json:"apps"`
	// Foreign is the number of Deployments that belong to nobody we know.
	Foreign int `json:"foreignDeployments"`
	// Create is from the operator's and the Apps' creation until every App is Ready, Restart from the start of a new process on all of
	// them until it has nothing left to do.
	Create  Load `json:"create"`
	Restart Load `json:"restart"`
	// Rest is the time after that.
	Rest Load `json:"rest"`
	// Memory of the restarted process over the time of Rest.
	Memory []MemorySample `json:"memory"`
}

// Load is what the operator did in a time.
type Load struct {
	Seconds float64 `json:"seconds"`
	// CPU is the operator's processor time in seconds; APIServer that of API server and etcd.
	CPU       float64 `json:"cpuSeconds"`
	APIServer float64 `json:"apiServerCPUSeconds"`
	// Verbs counts the operator's requests by verb and resource, Writes those that ask for a change.
	Verbs  map[string]int `json:"verbs"`
	Writes int            `json:"writes"`
	// Heap is the live heap in bytes after a garbage collection at the end, Resident the process's memory.
	Heap     int64 `json:"heapBytes"`
	Resident int64 `json:"residentBytes"`
}

// MemorySample is the operator's memory at a time.
type MemorySample struct {
	After    time.Duration `json:"afterNanoseconds"`
	Heap     int64         `json:"heapBytes"`
	Resident int64         `json:"residentBytes"`
}
