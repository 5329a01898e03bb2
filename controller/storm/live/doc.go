// Package live finds write storms in a running cluster.
//
// A Source watches resources from now on, at first for metadata only, and feeds a storm.Detector. Whatever turns out to be written
// often is watched in full, alone and only until its values have been seen. Nothing is ever written, and no list of objects is
// read.
//
// What a watch cannot show: writes without effect, rejected writes and reads; package auditlog finds those. After the API server
// has forgotten the version at which a watch was to go on, one version stands for any number of writes; Source.Watches counts
// such gaps.
package live
