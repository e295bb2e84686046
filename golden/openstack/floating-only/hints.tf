# Registers the VIPs of cnf10.example.com with OpenStack. Written by vipgen openstack-hints.

terraform {
  required_version = ">= 1.7"
  required_providers {
    openstack = {
      source = "terraform-provider-openstack/openstack"
    }
  }
}

locals {
  # The VIPs, by the Neutron port that reserves them. No server uses these ports.
  vips = {
    "ingress" = {
      id          = false
      port        = "cnf10-ingress-port"
      addresses   = { "10.0.0.7" = "10.0.0.0/16" }
      floating_ip = "203.0.113.11"
      fixed_ip    = "10.0.0.7"
    }
  }
}

data "openstack_networking_port_v2" "vip" {
  for_each = local.vips
  name     = each.value.id ? null : each.value.port
  port_id  = each.value.id ? each.value.port : null
}

resource "openstack_networking_floatingip_associate_v2" "vip" {
  for_each    = { for group, vip in local.vips : group => vip if vip.floating_ip != null }
  floating_ip = each.value.floating_ip
  fixed_ip    = each.value.fixed_ip
  port_id     = data.openstack_networking_port_v2.vip[each.key].id
}
