// Package auditlog finds write storms in the API server's audit log, and what a watch cannot show: writes without effect that
// are sent all the time, rejected writes that are retried in a loop, and floods of reads.
//
// An Analysis reads JSON lines of audit.k8s.io/v1 events at any level, plain or gzipped, and hands what they tell of objects to
// a storm.Detector. At the level Metadata that is who writes how often; versions, and with them no-ops and fields, are in logs
// of the level RequestResponse only. Memory does not grow with the length of the log: the longest line has a limit, and all
// counting is done by sketches.
package auditlog
