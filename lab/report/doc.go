// Package report holds the results of a benchmark, aggregates and prints them: as a table
// ([Report.WriteTable]), as JSON ([Report.WriteJSON]) and as one HTML file ([Report.WriteHTML])
// with a timeline of each VIP's holders.
package report
