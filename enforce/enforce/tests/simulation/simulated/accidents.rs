//! Accidents that happen from time to time: connections break, the device and the server stop, control intervenes.

use super::configuration::{Configuration, PriorityOrder};
use super::faults::FaultKind;
use super::link::FarEnd;
use super::plan::MS;
use super::tamper::Tampering;
use super::world::{ControlAction, TakeOverFate, World, WorldEvent};
use wire::Protocol;

impl World {
    /// An accident may happen now, and another one later.
    pub fn accident(&mut self) {
        if self.now >= self.plan.ends_at {
            return;
        }
        let next = self.now + self.dice.between(1, 60) * MS;
        self.schedule(next, WorldEvent::Accident);
        self.connections_break();
        if self.faults.strikes(FaultKind::DeviceStall, &mut self.dice) {
            self.device.stalled_until = self.now + self.dice.between(1, 400) * MS;
            self.schedule(self.device.stalled_until, WorldEvent::DeviceResumes);
        }
        if self.faults.strikes(FaultKind::FilesRunOut, &mut self.dice) {
            self.files_run_out();
        }
        if self.faults.strikes(FaultKind::ServerRestart, &mut self.dice) {
            self.restart_server();
        }
        if self.faults.strikes(FaultKind::Configuration, &mut self.dice) {
            let order = self.dice.pick(&PriorityOrder::ALL);
            let configuration = Configuration { order, is_swapped: self.dice.one_in(2) };
            self.actions.push_back(ControlAction::Configure(configuration));
        }
        if self.faults.strikes(FaultKind::WrongConfiguration, &mut self.dice) {
            self.actions.push_back(ControlAction::ConfigureWrongly);
        }
        if self.faults.strikes(FaultKind::ProxyDrain, &mut self.dice) {
            self.actions.push_back(ControlAction::Drain);
        } else if self.faults.strikes(FaultKind::ProxyStop, &mut self.dice) {
            self.actions.push_back(ControlAction::Stop);
        }
        let is_often = self.tampering.as_ref().is_some_and(|tampering| tampering.mistake.is_at_take_over());
        let World { faults, take_over_dice, .. } = self;
        if faults.strikes(FaultKind::TakeOver, take_over_dice) || is_often {
            let fates = [TakeOverFate::Succeeds, TakeOverFate::SucceedsWithAll, TakeOverFate::Dies];
            let fate = if is_often { fates[0] } else { take_over_dice.pick(&fates) };
            self.actions.push_back(ControlAction::TakeOver(fate));
        }
    }

    fn connections_break(&mut self) {
        let Some(victim) = (!self.open_links.is_empty()).then(|| self.dice.index(self.open_links.len()))
        else {
            return;
        };
        let link = self.open_links[victim];
        if self.links[link].is_far_gone {
            return;
        }
        if let FarEnd::Client(number) = self.links[link].far {
            if self.tampering.as_mut().is_some_and(Tampering::closes_client) {
                let at = self.links[link].from_proxy.end(self.now);
                self.schedule(at, WorldEvent::Look(link));
            }
            if self.faults.strikes(FaultKind::ClientReset, &mut self.dice) {
                let visible_at = self.links[link].reset_far(self.now);
                self.schedule(visible_at, WorldEvent::Wake);
                self.client_forgets(number, link);
            }
        } else if self.faults.strikes(FaultKind::ServerReset, &mut self.dice) {
            let is_reset = self.dice.one_in(2);
            self.break_server_link(link, "the connection to the server broke", is_reset);
        } else if self.plan.fronts[self.links[link].front] == Protocol::Nfs
            && self.faults.strikes(FaultKind::Callback, &mut self.dice)
        {
            self.call_client(link);
        }
    }

    /// Lets the process open few more files for a while.
    fn files_run_out(&mut self) {
        self.files_max = self.files_in_use() + self.dice.index(4);
        self.files_short_until = self.now + self.dice.between(1, 500) * MS;
        self.schedule(self.files_short_until, WorldEvent::FilesReturn);
    }

    fn restart_server(&mut self) {
        let front = self.dice.index(self.fronts.len());
        self.fronts[front].is_down = true;
        for link in self.open_links.clone() {
            if self.links[link].front == front && matches!(self.links[link].far, FarEnd::Server(_)) {
                self.break_server_link(link, "the server restarts", false);
            }
        }
        let up_at = self.now + self.dice.between(1, 300) * MS;
        self.schedule(up_at, WorldEvent::ServerStarts(front));
    }
}
