//! How is one rule said to nf_tables?
//!
//! A rule is a list of expressions that work on registers: one loads a field of the packet, the
//! next compares it, and the last one, met only where all before it held, decides.

use super::super::netlink::Bytes;

const LIST_ELEMENT: u16 = 1;
const EXPRESSION_NAME: u16 = 1;
const EXPRESSION_DATA: u16 = 2;
const DATA_VALUE: u16 = 1;
const DATA_VERDICT: u16 = 2;
const VERDICT_CODE: u16 = 1;

const META_DREG: u16 = 1;
const META_KEY: u16 = 2;
const CMP_SREG: u16 = 1;
const CMP_OP: u16 = 2;
const CMP_DATA: u16 = 3;
const PAYLOAD_DREG: u16 = 1;
const PAYLOAD_BASE: u16 = 2;
const PAYLOAD_OFFSET: u16 = 3;
const PAYLOAD_LENGTH: u16 = 4;
const CT_DREG: u16 = 1;
const CT_KEY: u16 = 2;
const BITWISE_SREG: u16 = 1;
const BITWISE_DREG: u16 = 2;
const BITWISE_LENGTH: u16 = 3;
const BITWISE_MASK: u16 = 4;
const BITWISE_XOR: u16 = 5;
const IMMEDIATE_DREG: u16 = 1;
const IMMEDIATE_DATA: u16 = 2;
const NAT_TYPE: u16 = 1;
const NAT_FAMILY: u16 = 2;
const NAT_ADDRESS: u16 = 3;
const NAT_PORT: u16 = 5;
const REJECT_TYPE: u16 = 1;
const REJECT_CODE: u16 = 2;

const REGISTER_VERDICT: u32 = 0;
const REGISTER_1: u32 = 1;
const REGISTER_2: u32 = 2;

const META_FAMILY: u32 = 15;
const META_PROTOCOL: u32 = 16;
const EQUAL: u32 = 0;
const NOT_EQUAL: u32 = 1;
const NETWORK_HEADER: u32 = 1;
const TRANSPORT_HEADER: u32 = 2;
const CT_STATE: u32 = 0;
const ESTABLISHED: u32 = 1 << 1;
const RELATED: u32 = 1 << 2;
const NAT_DESTINATION: u32 = 1;
const REJECT_ANY_FAMILY: u32 = 2;
const PORT_UNREACHABLE: u8 = 1;

/// What becomes of a packet.
#[derive(Clone, Copy)]
pub(super) enum Verdict {
    Drop = 0,
    Accept = 1,
}

/// Whose header the packet has.
#[derive(Clone, Copy)]
pub(super) enum Family {
    V4 = 2,
    V6 = 10,
}

/// A rule as it grows.
#[derive(Default)]
pub(super) struct Rule {
    family: Option<Family>,
    expressions: Bytes,
}

impl Rule {
    /// A rule for packets of this family.
    pub(super) fn of(family: Family) -> Rule {
        let rule = Rule { family: Some(family), ..Rule::default() };
        rule.meta(META_FAMILY, &[family as u8])
    }

    pub(super) fn protocol(self, protocol: u8) -> Rule {
        self.meta(META_PROTOCOL, &[protocol])
    }

    /// Where the destination address begins with these bytes.
    pub(super) fn destination(self, address: &[u8]) -> Rule {
        let offset = match self.family.expect("an address is of a family") {
            Family::V4 => 16,
            Family::V6 => 24,
        };
        self.field(NETWORK_HEADER, offset, address)
    }

    /// Where the destination port is this one; after [`Rule::protocol`].
    pub(super) fn port(self, number: u16) -> Rule {
        self.field(TRANSPORT_HEADER, 2, &number.to_be_bytes())
    }

    pub(super) fn icmp_type(self, kind: u8) -> Rule {
        self.field(TRANSPORT_HEADER, 0, &[kind])
    }

    /// Where an earlier packet of the same flow, or the one that this reports on, got through.
    pub(super) fn of_known_flow(self) -> Rule {
        let load = Bytes::default().number(CT_DREG, REGISTER_1).number(CT_KEY, CT_STATE);
        let wanted = ESTABLISHED | RELATED;
        let mask = Bytes::default()
            .number(BITWISE_SREG, REGISTER_1)
            .number(BITWISE_DREG, REGISTER_1)
            .number(BITWISE_LENGTH, 4)
            .nested(BITWISE_MASK, value(&wanted.to_ne_bytes()))
            .nested(BITWISE_XOR, value(&0u32.to_ne_bytes()));
        self.add("ct", load).add("bitwise", mask).compare(NOT_EQUAL, &0u32.to_ne_bytes())
    }

    /// Ends with a verdict.
    pub(super) fn end(self, verdict: Verdict) -> Bytes {
        let code = Bytes::default().number(VERDICT_CODE, verdict as u32);
        let data = Bytes::default().nested(DATA_VERDICT, code);
        let decide =
            Bytes::default().number(IMMEDIATE_DREG, REGISTER_VERDICT).nested(IMMEDIATE_DATA, data);
        self.add("immediate", decide).expressions
    }

    /// Ends with another destination.
    pub(super) fn send_to(self, address: &[u8], port: u16) -> Bytes {
        let family = self.family.expect("an address is of a family");
        let load = |register, bytes: &[u8]| {
            Bytes::default().number(IMMEDIATE_DREG, register).nested(IMMEDIATE_DATA, value(bytes))
        };
        let translate = Bytes::default()
            .number(NAT_TYPE, NAT_DESTINATION)
            .number(NAT_FAMILY, family as u32)
            .number(NAT_ADDRESS, REGISTER_1)
            .number(NAT_PORT, REGISTER_2);
        self.add("immediate", load(REGISTER_1, address))
            .add("immediate", load(REGISTER_2, &port.to_be_bytes()))
            .add("nat", translate)
            .expressions
    }

    /// Ends with an ICMP error of either family.
    pub(super) fn reject(self) -> Bytes {
        let refuse = Bytes::default()
            .number(REJECT_TYPE, REJECT_ANY_FAMILY)
            .attribute(REJECT_CODE, &[PORT_UNREACHABLE]);
        self.add("reject", refuse).expressions
    }

    fn meta(self, key: u32, wanted: &[u8]) -> Rule {
        let load = Bytes::default().number(META_DREG, REGISTER_1).number(META_KEY, key);
        self.add("meta", load).compare(EQUAL, wanted)
    }

    fn field(self, header: u32, offset: u32, wanted: &[u8]) -> Rule {
        let length = u32::try_from(wanted.len()).expect("fields are short");
        let load = Bytes::default()
            .number(PAYLOAD_DREG, REGISTER_1)
            .number(PAYLOAD_BASE, header)
            .number(PAYLOAD_OFFSET, offset)
            .number(PAYLOAD_LENGTH, length);
        self.add("payload", load).compare(EQUAL, wanted)
    }

    fn compare(self, operator: u32, with: &[u8]) -> Rule {
        let compare = Bytes::default()
            .number(CMP_SREG, REGISTER_1)
            .number(CMP_OP, operator)
            .nested(CMP_DATA, value(with));
        self.add("cmp", compare)
    }

    fn add(mut self, name: &str, data: Bytes) -> Rule {
        let expression = Bytes::default().text(EXPRESSION_NAME, name).nested(EXPRESSION_DATA, data);
        self.expressions = self.expressions.nested(LIST_ELEMENT, expression);
        self
    }
}

fn value(bytes: &[u8]) -> Bytes {
    Bytes::default().attribute(DATA_VALUE, bytes)
}
