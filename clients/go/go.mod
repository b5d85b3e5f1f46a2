module github.com/longwire/longwire/clients/go

go 1.24.0
