// Package requests measures what each way to write status asks of the API server during the life of one App.
//
// A control plane without controllers is all that runs besides the contestant: the benchmark itself plays the Deployment controller
// and the garbage collector, one step after the other, so that every contestant sees the same events and the counts are the same
// in each run. It counts in the API server's audit log, by user agent.
package requests
